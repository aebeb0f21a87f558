package describe

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// mp4Codecs are the codecs' usual names; others have the four characters of MP4.
var mp4Codecs = map[string]string{"avc1": "H.264", "avc3": "H.264", "hvc1": "H.265", "hev1": "H.265", "av01": "AV1", "vp08": "VP8", "vp09": "VP9", "mp4v": "MPEG-4", "jpeg": "MJPEG", "mp4a": "AAC", "ac-3": "AC-3",
	"alac": "ALAC", "fLaC": "FLAC", ".mp3": "MP3", "lpcm": "PCM", "sowt": "PCM", "twos": "PCM", "in24": "PCM"}

// film reads the headers of an MP4 or QuickTime (ISO 14496-12): the first pictures, and the first sound, of its tracks.
type film struct {
	io.ReaderAt
	facts *Facts
	count int
	kind  string // of the track that is read: vide, soun
}

// readMP4 reads how long an MP4 is and of what. What comes after its headers is not looked at.
func readMP4(f io.ReaderAt, size int64, facts *Facts) error {
	m := &film{ReaderAt: f, facts: facts}
	return m.each(0, size, m.box)
}

const maxBoxes = 10_000

// each calls do for the boxes between two bytes, until it says that it has all.
func (m *film) each(at, end int64, do func(kind string, at, n int64) (all bool, err error)) error {
	for at+8 <= end {
		if m.count++; m.count > maxBoxes {
			return fmt.Errorf("MP4: at byte %d: more than 10,000 boxes", at)
		}
		var head [16]byte
		if _, err := m.ReadAt(head[:8], at); err != nil {
			return err
		}
		length, body := int64(binary.BigEndian.Uint32(head[:])), int64(8)
		switch length {
		case 0:
			length = end - at
		case 1:
			if _, err := m.ReadAt(head[8:], at+8); err != nil {
				return fmt.Errorf("MP4: at byte %d: half a box", at)
			}
			length, body = int64(binary.BigEndian.Uint64(head[8:])), 16
		}
		if length < body || length > end-at {
			return fmt.Errorf("MP4: at byte %d: a box of %d bytes, in %d", at, length, end-at)
		}
		if all, err := do(string(head[4:8]), at+body, length-body); all || err != nil {
			return err
		}
		at += length
	}
	return nil
}

func (m *film) box(kind string, at, n int64) (all bool, err error) {
	switch kind {
	case "moov":
		return true, m.each(at, at+n, m.box)
	case "trak":
		m.kind = ""
		return false, m.each(at, at+n, m.box)
	case "mdia", "minf", "stbl", "udta":
		return false, m.each(at, at+n, m.box)
	case "mvhd":
		return false, m.header(at, n)
	case "hdlr":
		b, err := m.bytes(at, n, 12)
		if is := string(b[8:]); err == nil && (is == "vide" || is == "soun") { // QuickTime has another beside the tables
			m.kind = is
		}
		return false, err
	case "stsd":
		return false, m.sample(at, n)
	case "\xa9day":
		text, err := m.text(at, n)
		m.facts.setFirst([]string{text}, "")
		return false, err
	}
	if key := quickTime[kind]; key != "" {
		text, err := m.text(at, n)
		say(m.facts.Business, key, text)
		return false, err
	}
	return false, nil
}

// quickTime are the texts of QuickTime's own tags; those of MP4 are read by dhowden/tag.
var quickTime = map[string]string{"\xa9nam": "title", "\xa9ART": "creator", "\xa9aut": "creator", "\xa9alb": "album", "\xa9com": "composer", "\xa9gen": "genre", "\xa9cmt": "description", "\xa9des": "description"}

// text reads one of QuickTime's texts, in the first of its languages.
func (m *film) text(at, n int64) (string, error) {
	b, err := m.bytes(at, n, 4)
	if err != nil {
		return "", err
	}
	length := int64(binary.BigEndian.Uint16(b))
	if length > n-4 {
		return "", fmt.Errorf("MP4: at byte %d: a text of %d bytes, in %d", at, length, n-4)
	}
	b, err = m.bytes(at, n, 4+int(length))
	return clean(string(b[4:])), err
}

// bytes reads the first bytes of a box's content.
func (m *film) bytes(at, n int64, want int) ([]byte, error) {
	b := make([]byte, want)
	if n < int64(want) {
		return b, fmt.Errorf("MP4: at byte %d: a header of %d bytes", at, n)
	}
	_, err := m.ReadAt(b, at)
	return b, err
}

func (m *film) header(at, n int64) error {
	b, err := m.bytes(at, n, 20)
	if err != nil {
		return err
	}
	scale, units := uint64(binary.BigEndian.Uint32(b[12:])), uint64(binary.BigEndian.Uint32(b[16:]))
	if b[0] == 1 && n >= 32 {
		if b, err = m.bytes(at, n, 32); err != nil {
			return err
		}
		scale, units = uint64(binary.BigEndian.Uint32(b[20:])), binary.BigEndian.Uint64(b[24:])
	}
	if scale == 0 {
		return fmt.Errorf("MP4: at byte %d: a time scale of 0", at)
	}
	saySeconds(m.facts.Entity, float64(units)/float64(scale))
	return nil
}

// sample reads the first of the formats that a track's samples have.
func (m *film) sample(at, n int64) error {
	to := m.facts.Entity
	_, seen := to["width"]
	_, heard := to["channels"]
	if m.kind == "" || m.kind == "vide" && seen || m.kind == "soun" && heard || n < 16 {
		return nil
	}
	b, err := m.bytes(at, n, 44)
	if err != nil {
		return err
	}
	codec := string(b[12:16])
	if name := mp4Codecs[codec]; name != "" {
		codec = name
	}
	codec = strings.TrimSpace(codec)
	if m.kind == "vide" {
		say(to, "codec", codec)
		say(to, "width", int(binary.BigEndian.Uint16(b[40:])))
		say(to, "height", int(binary.BigEndian.Uint16(b[42:])))
		return nil
	}
	key := "audioCodec"
	if m.facts.Kind == Audio {
		key = "codec"
	}
	say(to, key, codec)
	channels := int(binary.BigEndian.Uint16(b[32:]))
	if more, err := m.bytes(at, n, int(min(n, 1024))); err == nil && codec == "AAC" {
		channels = cmp.Or(aacChannels(more), channels) // which is 2 for want of a truth
	}
	say(to, "channels", channels)
	say(to, "sampleRate", int(binary.BigEndian.Uint16(b[40:])))
	if codec == "PCM" || codec == "FLAC" || codec == "ALAC" {
		say(to, "bits", int(binary.BigEndian.Uint16(b[34:])))
	}
	return nil
}

// aacChannels finds how many channels the decoder is told of (ISO 14496-1 and -3); 0: it is not.
func aacChannels(entry []byte) int {
	_, b, _ := bytes.Cut(entry, []byte("esds"))
	for at, tags := 4, []struct {
		tag  byte
		skip int // of its own fields
	}{{3, 3}, {4, 13}, {5, 0}}; len(tags) > 0; tags = tags[1:] {
		if at >= len(b) || b[at] != tags[0].tag {
			return 0
		}
		for at++; at < len(b) && b[at]&0x80 != 0; at++ { // the length
		}
		if at += 1 + tags[0].skip; tags[0].tag == 5 && at+1 < len(b) && (b[at]&7)<<1|b[at+1]>>7 != 15 {
			return []int{0, 1, 2, 3, 4, 5, 6, 8}[b[at+1]>>3&7]
		}
	}
	return 0
}
