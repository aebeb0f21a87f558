package describe

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/dhowden/tag"
)

// container reads what a file of its ending is technically; tags are where those are read by dhowden/tag.
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
	".aif": aif, ".aiff": aif, ".aifc": aif, ".ogg": ogg, ".oga": ogg, ".opus": {"Opus", readOgg, true}, ".flac": {"FLAC", readFLAC, true}, ".mp3": {"MP3", readMP3, true}}

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
	if err := c.read(f, size, facts); err != nil {
		return err
	}
	if !c.tags {
		return nil
	}
	if c.format != "MP3" && facts.Kind == Audio && c.format != "M4A" {
		size = min(size, maxTagsAt)
	}
	m, err := tag.ReadFrom(io.NewSectionReader(f, 0, size))
	if known := len(facts.Entity) > 1; err != nil && !known {
		return fmt.Errorf("%s: at byte 0: neither sound, pictures nor tags of such a file: %w", c.format, err)
	}
	if errors.Is(err, tag.ErrNoTagsFound) || errors.Is(err, io.EOF) && (c.format == "OGG" || c.format == "Opus") { // no packet of them to the end
		return nil
	}
	if err != nil {
		facts.warn("its tags are left out: %v", err)
		return nil
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
