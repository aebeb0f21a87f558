package describe

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// maxOggPage is how long a page of Ogg can be: its head, 255 lengths and as many segments (RFC 3533).
const maxOggPage = 27 + 255 + 255*255

// readOgg reads of which sound the first stream of an Ogg is, and how long by its last page.
func readOgg(f io.ReaderAt, size int64, facts *Facts) error {
	b := make([]byte, min(size, 512))
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return err
	}
	if len(b) < 28 || string(b[:4]) != "OggS" || len(b) < 27+int(b[26]) {
		return fmt.Errorf("OGG: at byte 0: no page")
	}
	serial, body := binary.LittleEndian.Uint32(b[14:]), 27+int(b[26])
	b = b[body:]
	le, e := binary.LittleEndian, facts.Entity
	var rate, skip float64
	switch {
	case bytes.HasPrefix(b, []byte("OpusHead")) && len(b) >= 19: // RFC 7845
		say(e, "codec", "Opus")
		say(e, "channels", int(b[9]))
		say(e, "sampleRate", int(le.Uint32(b[12:]))) // of what was encoded; a page counts in 48 kHz
		rate, skip = 48000, float64(le.Uint16(b[10:]))
	case bytes.HasPrefix(b, []byte("\x01vorbis")) && len(b) >= 16:
		say(e, "codec", "Vorbis")
		say(e, "channels", int(b[11]))
		say(e, "sampleRate", int(le.Uint32(b[12:])))
		rate = float64(le.Uint32(b[12:]))
	case bytes.HasPrefix(b, []byte("\x7fFLAC")) && len(b) >= 13+4+18:
		rate = streamInfo(b[17:], e)
	}
	if samples := lastGranule(f, size, serial); samples > 0 && rate > 0 {
		saySeconds(e, (samples-skip)/rate)
	}
	return nil
}

// lastGranule is where the last page of a stream says that it ends.
func lastGranule(f io.ReaderAt, size int64, serial uint32) float64 {
	end := make([]byte, min(size, 2*maxOggPage))
	if _, err := f.ReadAt(end, size-int64(len(end))); err != nil && err != io.EOF {
		return 0
	}
	for {
		at := bytes.LastIndex(end, []byte("OggS"))
		if at < 0 {
			return 0
		}
		if page := end[at:]; len(page) >= 27 && binary.LittleEndian.Uint32(page[14:]) == serial {
			if granule := binary.LittleEndian.Uint64(page[6:]); granule < math.MaxInt64 { // else no packet ends there
				return float64(granule)
			}
		}
		end = end[:at]
	}
}

// readFLAC reads the first block of a FLAC, where it is what the format wants (RFC 9639, 8.2).
func readFLAC(f io.ReaderAt, size int64, facts *Facts) error {
	var b [8 + 18]byte
	if size < int64(len(b)) {
		return nil
	}
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return err
	}
	if string(b[:4]) != "fLaC" || b[4]&0x7f != 0 {
		return nil
	}
	streamInfo(b[8:], facts.Entity)
	return nil
}

// streamInfo reads the block STREAMINFO of a FLAC, and gives its sample rate.
func streamInfo(b []byte, e map[string]any) float64 {
	v := binary.BigEndian.Uint64(b[10:])
	rate, channels, bits, samples := v>>44, v>>41&7+1, v>>36&31+1, v&(1<<36-1)
	say(e, "codec", "FLAC")
	say(e, "channels", int(channels))
	say(e, "sampleRate", int(rate))
	say(e, "bits", int(bits))
	if rate > 0 {
		saySeconds(e, float64(samples)/float64(rate))
	}
	return float64(rate)
}
