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

// readMedia reads the tags of audio and video, and of MP4 and QuickTime how long it is.
func readMedia(q Request, facts *Facts) error {
	f, size, err := openFile(q.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	facts.Entity["format"] = strings.ToUpper(strings.TrimPrefix(path.Ext(q.Name), "."))
	switch strings.ToLower(path.Ext(q.Name)) {
	case ".mp4", ".m4a", ".m4v", ".mov":
		seconds, err := duration(f, size)
		if err != nil {
			return err
		}
		if seconds > 0 {
			facts.Entity["seconds"] = seconds
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	m, err := tag.ReadFrom(f)
	if errors.Is(err, tag.ErrNoTagsFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("tags: %w", err)
	}
	facts.tagged(m)
	return nil
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
