package describe

import (
	"bytes"
	"encoding/binary"
	"io"
)

// The tables are ISO 11172-3's and, of the lower rates, ISO 13818-3's, for layer III.
var (
	mp3Rates   = [3]int{44100, 48000, 32000}
	mp3Kbits   = [15]int{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}
	mp3LowKbit = [15]int{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}
)

// frame is the header of a frame of an MP3.
type frame struct {
	rate, kbits, channels int
	samples               int // of each channel
	side                  int // bytes between the header and what an encoder says of the whole
}

// frameOf reads a header; false: it is none of layer III.
func frameOf(b []byte) (f frame, ok bool) {
	if len(b) < 4 || b[0] != 0xff || b[1]&0xe6 != 0xe2 {
		return f, false
	}
	version, kbit, rate := b[1]>>3&3, int(b[2]>>4), int(b[2]>>2&3)
	if version == 1 || rate == 3 || kbit == 15 {
		return f, false
	}
	f = frame{rate: mp3Rates[rate], kbits: mp3Kbits[kbit], channels: 2, samples: 1152, side: 32}
	mono := b[3]>>6 == 3
	if mono {
		f.channels, f.side = 1, 17
	}
	if version != 3 { // MPEG-2 and 2.5
		f.rate, f.kbits, f.samples, f.side = f.rate/2, mp3LowKbit[kbit], 576, 17
		if mono {
			f.side = 9
		}
	}
	if version == 0 {
		f.rate /= 2
	}
	return f, true
}

// mp3Head is how far behind the tags the first frame is looked for.
const mp3Head = 64 << 10

// readMP3 reads the first frame of an MP3. Where that does not say how many there are, the bit rate says how long the
// file is. One without a frame has tags alone.
func readMP3(f io.ReaderAt, size int64, facts *Facts) error {
	start, end := int64(0), size
	var head [10]byte
	if _, err := f.ReadAt(head[:], 0); err == nil && string(head[:3]) == "ID3" {
		start = 10 + int64(head[6]&0x7f)<<21 + int64(head[7]&0x7f)<<14 + int64(head[8]&0x7f)<<7 + int64(head[9]&0x7f)
	}
	var tail [3]byte
	if _, err := f.ReadAt(tail[:], size-128); err == nil && string(tail[:]) == "TAG" {
		end -= 128
	}
	b := make([]byte, max(min(mp3Head, end-start), 0))
	if n, err := f.ReadAt(b, start); err != nil && n == 0 {
		return nil // the tags say what is wrong
	}
	for at := 0; at+4 <= len(b); at++ {
		h, ok := frameOf(b[at:])
		if !ok || !h.followed(b[at:]) {
			continue
		}
		say(facts.Entity, "codec", "MP3")
		say(facts.Entity, "channels", h.channels)
		say(facts.Entity, "sampleRate", h.rate)
		if n := h.frames(b[at:]); n > 0 {
			saySeconds(facts.Entity, float64(n)*float64(h.samples)/float64(h.rate))
		} else if h.kbits > 0 {
			saySeconds(facts.Entity, float64(end-start-int64(at))*8/float64(h.kbits*1000))
		}
		return nil
	}
	return nil
}

// followed reports whether another frame of its kind comes where this one ends, as far as b shows it.
func (h frame) followed(b []byte) bool {
	if h.kbits == 0 {
		return true // of a free format, whose length nothing says
	}
	next := h.samples / 8 * h.kbits * 1000 / h.rate
	if b[2]&2 != 0 {
		next++
	}
	if next+4 > len(b) {
		return true
	}
	n, ok := frameOf(b[next:])
	return ok && n.rate == h.rate
}

// frames is how many frames the encoder says that there are, behind this one; 0: it does not.
func (h frame) frames(b []byte) uint32 {
	at := 4 + h.side
	if at+12 <= len(b) && (bytes.HasPrefix(b[at:], []byte("Xing")) || bytes.HasPrefix(b[at:], []byte("Info"))) && b[at+7]&1 != 0 {
		return binary.BigEndian.Uint32(b[at+8:])
	}
	if at = 36; at+18 <= len(b) && bytes.HasPrefix(b[at:], []byte("VBRI")) {
		return binary.BigEndian.Uint32(b[at+14:])
	}
	return 0
}
