package describe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dhowden/tag"
)

// chunked is a file of chunks: RIFF (WAV, AVI), whose numbers are little-endian, and IFF (AIFF), whose are big-endian.
// Chunks are read where they are small; sound and frames are passed over, which x/image/riff reads.
type chunked struct {
	io.ReaderAt
	facts  *Facts
	format string
	order  binary.ByteOrder
	count  int
	data   int64 // length of the chunk `data`, as RF64 gives it
}

// chunk is one chunk: its content's first byte and length.
type chunk struct {
	id    string
	at, n int64
}

const (
	maxChunks    = 10000
	maxChunkRead = 64 << 10
	openEnded    = math.MaxUint32 // a length that whoever wrote the file as a stream did not know
)

// each calls do for the chunks between two bytes.
func (c *chunked) each(at, end int64, do func(chunk) error) error {
	for at+8 <= end {
		if c.count++; c.count > maxChunks {
			return fmt.Errorf("%s: at byte %d: more than %d chunks", c.format, at, maxChunks)
		}
		var head [8]byte
		if _, err := c.ReadAt(head[:], at); err != nil {
			return fmt.Errorf("%s: at byte %d: %w", c.format, at, err)
		}
		k := chunk{string(head[:4]), at + 8, int64(c.order.Uint32(head[4:]))}
		if k.n == openEnded {
			k.n = end - k.at
			if k.id == "data" && c.data > 0 {
				k.n = c.data
			}
		}
		if k.n > end-k.at {
			return fmt.Errorf("%s: at byte %d: a chunk %q of %d bytes, in %d", c.format, at, clean(k.id), k.n, end-k.at)
		}
		if err := do(k); err != nil {
			return err
		}
		at = k.at + k.n + k.n%2
	}
	return nil
}

// bytes reads what a chunk begins with, at least least of it.
func (c *chunked) bytes(k chunk, least int64) ([]byte, error) {
	if k.n < least {
		return nil, fmt.Errorf("%s: at byte %d: a chunk %q of %d bytes, less than %d", c.format, k.at-8, clean(k.id), k.n, least)
	}
	b := make([]byte, min(k.n, maxChunkRead))
	if _, err := c.ReadAt(b, k.at); err != nil {
		return nil, fmt.Errorf("%s: at byte %d: %w", c.format, k.at, err)
	}
	return b, nil
}

// text reads a chunk that is a text, which a zero may end.
func (c *chunked) text(k chunk) (string, error) {
	b, err := c.bytes(k, 0)
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text), err
}

// open reads the first twelve bytes, and gives what the form is of and where it ends.
func (c *chunked) open(size int64, ids ...string) (form string, end int64, err error) {
	var head [12]byte
	if _, err := c.ReadAt(head[:], 0); err != nil && err != io.EOF {
		return "", 0, err
	}
	form = string(head[8:])
	if !slices.Contains(ids, string(head[:4])+form) {
		return "", 0, fmt.Errorf("%s: at byte 0: no %s", c.format, strings.Join(ids, " or "))
	}
	n := int64(c.order.Uint32(head[4:]))
	if n > size-8 {
		if n != openEnded {
			c.facts.warn("at byte 4: it says that %d bytes follow, there are %d", n, size-8)
		}
		n = size - 8
	}
	return form, 8 + n, nil
}

// info are the chunks of a list INFO, by the key that gets their text.
var info = map[string]string{"INAM": "title", "IART": "creator", "IPRD": "album", "IGNR": "genre", "ICMT": "description", "ISBJ": "subject", "ICOP": "rights", "IKEY": "keywords"}

// readInfo reads a list's chunks, when it is one of texts; dates get those that say when.
func (c *chunked) readInfo(list chunk, dates *[]string) error {
	return c.each(list.at+4, list.at+list.n, func(k chunk) error {
		if info[k.id] == "" && k.id != "ICRD" && k.id != "ISFT" {
			return nil
		}
		text, err := c.text(k)
		switch k.id {
		case "ICRD":
			*dates = append(*dates, text)
		case "ISFT":
			say(c.facts.Entity, "writtenWith", text)
		default:
			say(c.facts.Business, info[k.id], text)
		}
		return err
	})
}

// id3 reads tags that stand in a chunk.
func (c *chunked) id3(k chunk) {
	m, err := tag.ReadID3v2Tags(io.NewSectionReader(c, k.at, k.n))
	if err != nil {
		c.facts.warn("the tags at byte %d: %v", k.at, err)
		return
	}
	c.facts.tagged(m)
}

// wavCodecs are the codecs of WAV's format tags (RFC 2361).
var wavCodecs = map[uint16]string{1: "PCM", 2: "ADPCM", 3: "PCM float", 6: "A-law", 7: "µ-law", 0x11: "IMA ADPCM", 0x31: "GSM", 0x50: "MP2", 0x55: "MP3", 0xff: "AAC", 0x2000: "AC-3"}

// sound is what WAV's `fmt ` and AVI's `strf` say of sound.
type sound struct {
	codec          string
	channels, bits int
	rate, perBlock int
	bytesPerSecond int
}

func soundOf(b []byte) (s sound) {
	le := binary.LittleEndian
	code := le.Uint16(b)
	if code == 0xfffe && len(b) >= 26 { // extensible: the code begins the identifier of the true format
		code = le.Uint16(b[24:])
	}
	s.codec = wavCodecs[code]
	if s.codec == "" {
		s.codec = fmt.Sprintf("0x%04x", code)
	}
	s.channels, s.rate, s.bytesPerSecond = int(le.Uint16(b[2:])), int(le.Uint32(b[4:])), int(le.Uint32(b[8:]))
	s.perBlock, s.bits = int(le.Uint16(b[12:])), int(le.Uint16(b[14:]))
	return s
}

// say says what sound there is; the codec's key is another where it comes with pictures.
func (s sound) say(e map[string]any, codec string) {
	say(e, codec, s.codec)
	say(e, "channels", s.channels)
	say(e, "sampleRate", s.rate)
	say(e, "bits", s.bits)
}

var errNoFormat = errors.New("nothing says of what format the sound is")

// saySeconds keeps a length that is one.
func saySeconds(e map[string]any, seconds float64) {
	if seconds > 0 && !math.IsInf(seconds, 0) {
		e["seconds"] = math.Round(seconds*1000) / 1000
	}
}

// readBroadcast reads what broadcasters say of a recording (EBU Tech 3285); dates get when it was made, before all others.
func (c *chunked) readBroadcast(k chunk, dates *[]string) error {
	b, err := c.bytes(k, 602)
	if err != nil {
		return err
	}
	field := func(from, n int) string { text, _, _ := bytes.Cut(b[from:from+n], []byte{0}); return string(text) }
	say(c.facts.Business, "description", field(0, 256))
	say(c.facts.Business, "originator", field(256, 32))
	say(c.facts.Business, "identifier", field(288, 32))
	day := strings.NewReplacer("_", "-", ":", "-", "/", "-", " ", "-", ".", "-").Replace(field(320, 10))
	second := strings.NewReplacer("_", ":", "-", ":", ".", ":").Replace(field(330, 8))
	*dates = append([]string{day + " " + second, day}, *dates...)
	return nil
}

// readWAV reads a WAV, a broadcast WAV or its kin beyond 4 GiB, RF64 (EBU Tech 3306).
func readWAV(f io.ReaderAt, size int64, facts *Facts) error {
	c := &chunked{ReaderAt: f, facts: facts, format: "WAV", order: binary.LittleEndian}
	_, end, err := c.open(size, "RIFFWAVE", "RF64WAVE", "BW64WAVE")
	if err != nil {
		return err
	}
	var s sound
	var found bool
	var samples, data int64
	var dates []string
	err = c.each(12, end, func(k chunk) error {
		switch k.id {
		case "ds64":
			b, err := c.bytes(k, 24)
			if err == nil {
				c.data = int64(min(binary.LittleEndian.Uint64(b[8:]), math.MaxInt64))
			}
			return err
		case "fmt ":
			b, err := c.bytes(k, 16)
			if err == nil {
				s, found = soundOf(b), true
			}
			return err
		case "fact":
			b, err := c.bytes(k, 4)
			if err == nil {
				samples = int64(binary.LittleEndian.Uint32(b))
			}
			return err
		case "data":
			data = k.n
		case "bext":
			return c.readBroadcast(k, &dates)
		case "LIST":
			if kind, err := c.bytes(k, 4); err != nil || string(kind[:4]) != "INFO" {
				return err
			}
			return c.readInfo(k, &dates)
		case "id3 ", "ID3 ":
			c.id3(k)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("WAV: at byte 12: %w", errNoFormat)
	}
	s.say(facts.Entity, "codec")
	switch pcm := strings.HasPrefix(s.codec, "PCM"); {
	case pcm && s.perBlock > 0 && s.rate > 0:
		saySeconds(facts.Entity, float64(data/int64(s.perBlock))/float64(s.rate))
	case samples > 0 && s.rate > 0:
		saySeconds(facts.Entity, float64(samples)/float64(s.rate))
	case s.bytesPerSecond > 0:
		saySeconds(facts.Entity, float64(data)/float64(s.bytesPerSecond))
	}
	if facts.Time == nil {
		facts.setFirst(dates, "")
	}
	return nil
}

// readAIFF reads an AIFF or AIFF-C.
func readAIFF(f io.ReaderAt, size int64, facts *Facts) error {
	c := &chunked{ReaderAt: f, facts: facts, format: "AIFF", order: binary.BigEndian}
	form, end, err := c.open(size, "FORMAIFF", "FORMAIFC")
	if err != nil {
		return err
	}
	found := false
	err = c.each(12, end, func(k chunk) error {
		switch key := map[string]string{"NAME": "title", "AUTH": "creator", "(c) ": "rights", "ANNO": "description"}[k.id]; {
		case k.id == "COMM":
			b, err := c.bytes(k, 18)
			if err != nil {
				return err
			}
			found = true
			s := sound{codec: "PCM", channels: int(c.order.Uint16(b)), bits: int(c.order.Uint16(b[6:]))}
			rate := extended(b[8:18])
			if rate > 0 && rate < math.MaxInt32 {
				s.rate = int(math.Round(rate))
				saySeconds(facts.Entity, float64(c.order.Uint32(b[2:]))/rate)
			}
			if form == "AIFC" && len(b) >= 22 {
				if s.codec = string(b[18:22]); s.codec == "NONE" || s.codec == "sowt" || s.codec == "twos" {
					s.codec = "PCM"
				}
			}
			s.say(facts.Entity, "codec")
		case k.id == "ID3 " || k.id == "id3 ":
			c.id3(k)
		case key != "":
			text, err := c.text(k)
			say(facts.Business, key, text)
			return err
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("AIFF: at byte 12: %w", errNoFormat)
	}
	return err
}

// extended reads a number of 80 bits, as Apple wrote sample rates.
func extended(b []byte) float64 {
	exponent := int(binary.BigEndian.Uint16(b)&0x7fff) - 16383 - 63
	return math.Ldexp(float64(binary.BigEndian.Uint64(b[2:])), exponent)
}
