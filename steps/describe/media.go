package describe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/dhowden/tag"
)

// container reads what a file of its ending is technically; tags are where those are read by dhowden/tag, which
// reads them of MP3 alone without any.
type container struct {
	format string
	read   func(io.ReaderAt, int64, *Facts) error
	tags   bool
}

var (
	mp4 = container{"MP4", readMP4, true}
	mkv = container{"Matroska", readMatroska, false}
	ogg = container{"OGG", readOgg, true}
	aif = container{"AIFF", readAIFF, false}
)

var containers = map[string]container{".mp4": mp4, ".m4a": {"M4A", readMP4, true}, ".m4v": {"M4V", readMP4, true}, ".mov": {"MOV", readMP4, true},
	".mkv": mkv, ".mka": mkv, ".webm": mkv, ".avi": {"AVI", readAVI, false}, ".wav": {"WAV", readWAV, false}, ".wave": {"WAV", readWAV, false}, ".bwf": {"WAV", readWAV, false},
	".aif": aif, ".aiff": aif, ".aifc": aif, ".ogg": ogg, ".oga": ogg, ".opus": {"Opus", readOgg, true}, ".flac": {"FLAC", readFLAC, true}, ".mp3": {"MP3", nil, true}}

// maxTagsAt is where the tags of an Ogg or FLAC, which come first, are no longer looked for.
const maxTagsAt = 64 << 20

// readMedia reads how long audio or video is and of what, and its tags.
func readMedia(q Request, facts *Facts) error {
	f, size, err := openFile(q.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	c := containers[strings.ToLower(path.Ext(q.Name))]
	facts.Entity["format"] = c.format
	if c.read != nil {
		if err := c.read(f, size, facts); err != nil {
			return err
		}
	}
	if !c.tags {
		return nil
	}
	if c.read != nil && facts.Kind == Audio && c.format != "M4A" {
		size = min(size, maxTagsAt)
	}
	m, err := tag.ReadFrom(io.NewSectionReader(f, 0, size))
	if errors.Is(err, tag.ErrNoTagsFound) || errors.Is(err, io.EOF) && (c.format == "OGG" || c.format == "Opus") { // no packet of them to the end
		return nil
	}
	if err != nil && c.read == nil { // nothing else is known of the file
		return fmt.Errorf("tags: %w", err)
	}
	if err != nil {
		facts.warn("its tags are left out: %v", err)
		return nil
	}
	facts.tagged(m)
	return nil
}

// readMP4 reads how long an MP4 or QuickTime is.
func readMP4(f io.ReaderAt, size int64, facts *Facts) error {
	seconds, err := duration(f, size)
	saySeconds(facts.Entity, seconds)
	return err
}

// tagged takes over what tags say, and when it is from, as exactly as they say it.
func (facts *Facts) tagged(m tag.Metadata) {
	raw := func(key string) string {
		text, _ := m.Raw()[key].(string)
		return clean(text)
	}
	say(facts.Entity, "tags", string(m.Format()))
	b := facts.Business
	say(b, "title", m.Title())
	say(b, "creator", m.Artist())
	say(b, "album", m.Album())
	if m.Format() == tag.VORBIS { // whose composer is the artist where there is none
		say(b, "composer", raw("composer"))
	} else {
		say(b, "composer", m.Composer())
	}
	say(b, "genre", m.Genre())
	say(b, "description", m.Comment())
	dates := []string{raw("TDRC")}
	for year, day := range map[string]string{"TYER": "TDAT", "TYE": "TDA"} { // of which a file has one at most
		if y, d := raw(year), raw(day); len(y) == 4 && len(d) == 4 {
			dates = append(dates, y+d[2:]+d[:2])
		}
	}
	dates = append(dates, raw("date"), raw("\xa9day"), raw("TYER"), raw("TYE"), raw("year"))
	for _, d := range dates {
		if len(d) > 4 {
			dates = append(dates, d[:4])
		}
	}
	facts.setFirst(dates, "")
}

// duration finds moov/mvhd among the boxes of an MP4, and gives its seconds.
func duration(f io.ReaderAt, size int64) (float64, error) {
	for at, end, boxes := int64(0), size, 0; at+8 <= end; boxes++ {
		if boxes > 10000 {
			return 0, fmt.Errorf("MP4: at byte %d: more than 10,000 boxes", at)
		}
		var head [16]byte
		if _, err := f.ReadAt(head[:8], at); err != nil {
			return 0, err
		}
		length, body := int64(binary.BigEndian.Uint32(head[:])), int64(8)
		switch length {
		case 0:
			length = end - at
		case 1:
			if _, err := f.ReadAt(head[8:], at+8); err != nil {
				return 0, fmt.Errorf("MP4: at byte %d: half a box", at)
			}
			length, body = int64(binary.BigEndian.Uint64(head[8:])), 16
		}
		if length < body || length > end-at {
			return 0, fmt.Errorf("MP4: at byte %d: a box of %d bytes, in %d", at, length, end-at)
		}
		switch string(head[4:8]) {
		case "moov":
			at, end = at+body, at+length
			continue
		case "mvhd":
			return movieSeconds(f, at+body, length-body)
		}
		at += length
	}
	return 0, nil
}

func movieSeconds(f io.ReaderAt, at, n int64) (float64, error) {
	b := make([]byte, 32)
	if n < 20 {
		return 0, fmt.Errorf("MP4: at byte %d: a header of %d bytes", at, n)
	}
	if _, err := f.ReadAt(b[:min(n, 32)], at); err != nil {
		return 0, err
	}
	scale, units := uint64(binary.BigEndian.Uint32(b[12:])), uint64(binary.BigEndian.Uint32(b[16:]))
	if b[0] == 1 && n >= 32 {
		scale, units = uint64(binary.BigEndian.Uint32(b[20:])), binary.BigEndian.Uint64(b[24:])
	}
	if scale == 0 {
		return 0, fmt.Errorf("MP4: at byte %d: a time scale of 0", at)
	}
	return float64(units) / float64(scale), nil
}
