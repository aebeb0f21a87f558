package describe

import (
	"bytes"
	"errors"
	"fmt"
	"image/gif"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"bagpipe/steps/raster"

	"github.com/bep/imagemeta"
)

var imageFormats = map[string]imagemeta.ImageFormat{".jpg": imagemeta.JPEG, ".jpeg": imagemeta.JPEG, ".png": imagemeta.PNG, ".webp": imagemeta.WebP,
	".heic": imagemeta.HEIF, ".heif": imagemeta.HEIF, ".avif": imagemeta.AVIF, ".dng": imagemeta.DNG}

// businessTags are the tags of EXIF, IPTC and XMP that say what a picture is about.
var businessTags = map[string]string{"ImageDescription": "description", "Caption-Abstract": "description", "description": "description", "Description": "description",
	"Artist": "creator", "By-line": "creator", "creator": "creator", "Creator": "creator", "Copyright": "rights", "CopyrightNotice": "rights", "rights": "rights", "Rights": "rights",
	"Headline": "title", "ObjectName": "title", "title": "title", "Title": "title", "Keywords": "keywords", "subject": "keywords", "Subject": "keywords",
	"City": "city", "Country-PrimaryLocationName": "country", "Province-State": "region", "Sub-location": "location", "Country": "country", "State": "region", "Location": "location"}

var entityTags = map[string]string{"Make": "make", "Model": "model", "LensModel": "lens", "Orientation": "orientation", "Software": "software",
	"ExposureTime": "exposure", "FNumber": "aperture", "ISO": "iso", "FocalLength": "focalLength"}

// readImage reads a picture's size and what EXIF, IPTC and XMP say.
func readImage(q Request, facts *Facts) error {
	f, size, err := openFile(q.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	ending := pictureEnding(q.Name)
	facts.Entity["format"] = strings.ToUpper(strings.TrimPrefix(strings.Replace(ending, ".jpg", ".jpeg", 1), "."))
	if ending == ".gif" { // imagemeta reads none
		c, err := gif.DecodeConfig(io.NewSectionReader(f, 0, size))
		if err != nil {
			return fmt.Errorf("picture: at byte 0: %w", err)
		}
		say(facts.Entity, "width", c.Width)
		say(facts.Entity, "height", c.Height)
		facts.place(q, &raster.Page{Width: int64(c.Width), Height: int64(c.Height)}) // by a world file
		return nil
	}
	var tags imagemeta.Tags
	var width, height int
	var flaws []error
	for _, source := range []imagemeta.Source{imagemeta.CONFIG, imagemeta.EXIF, imagemeta.IPTC, imagemeta.XMP} { // what is wrong with one says nothing of the others
		result, err := tagsOf(f, size, imagemeta.Options{ImageFormat: imageFormats[ending], Sources: source, Timeout: 30 * time.Second,
			ShouldHandleTag: func(imagemeta.TagInfo) bool { return true },
			HandleTag:       func(t imagemeta.TagInfo) error { tags.Add(t); return nil }})
		if source == imagemeta.CONFIG {
			width, height = result.ImageConfig.Width, result.ImageConfig.Height
		}
		if err != nil {
			flaws = append(flaws, flaw(f, size, imageFormats[ending], source, err))
		}
	}
	say(facts.Entity, "width", width)
	say(facts.Entity, "height", height)
	if width == 0 && len(tags.All()) == 0 {
		return errors.Join(append([]error{fmt.Errorf("picture: at byte 0: no %s", facts.Entity["format"])}, flaws...)...)
	}
	for _, err := range flaws {
		facts.warn("%v", err)
	}
	if _, more := tags.XMP()["HasExtendedXMP"]; more {
		facts.warn("XMP: it goes on beyond its first part, which alone is read")
	}
	for _, group := range []map[string]imagemeta.TagInfo{tags.IPTC(), tags.XMP(), tags.EXIF()} {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			facts.tag(name, group[name].Value)
		}
	}
	facts.taken(&tags)
	if !facts.position(q, f, size, &tags) && width > 0 && height > 0 {
		facts.place(q, &raster.Page{Width: int64(width), Height: int64(height)}) // by a world file
	}
	return nil
}

// flaw says what is wrong with one source of a picture's metadata; of XMP, whose reader knows but the line, with the byte.
func flaw(f io.ReaderAt, size int64, format imagemeta.ImageFormat, source imagemeta.Source, err error) error {
	name := source.String()
	if source == imagemeta.CONFIG {
		name = "size"
	}
	if source == imagemeta.XMP {
		packet, from := xmpOf(f, size, format)
		if at, ok := brokenAt(packet); ok && from >= 0 {
			return fmt.Errorf("XMP: at byte %d: %w", from+int64(at), err)
		}
	}
	return fmt.Errorf("%s: %w", name, err)
}

// xmpOf gives the XMP of a picture, and where in the file it stands; -1 where it is not there as it is.
func xmpOf(f io.ReaderAt, size int64, format imagemeta.ImageFormat) (packet []byte, at int64) {
	_, err := tagsOf(f, size, imagemeta.Options{ImageFormat: format, Sources: imagemeta.XMP, Timeout: 30 * time.Second,
		HandleXMP: func(r io.Reader) (err error) { packet, err = io.ReadAll(io.LimitReader(r, maxSideCar)); return err }})
	if err != nil || len(packet) == 0 {
		return packet, -1
	}
	head := make([]byte, min(size, maxSideCar))
	if _, err := f.ReadAt(head, 0); err != nil {
		return packet, -1
	}
	return packet, int64(bytes.Index(head, packet))
}

func pictureEnding(name string) string { return strings.ToLower(path.Ext(name)) }

// tag keeps one tag; the first source that has it decides.
func (facts *Facts) tag(name string, value any) {
	to := facts.Business
	key := businessTags[name]
	if key == "" {
		key, to = entityTags[name], facts.Entity
	}
	if _, there := to[key]; key == "" || there {
		return
	}
	switch v := value.(type) {
	case []string:
		sayAll(to, key, v)
	case fmt.Stringer:
		say(to, key, v.String())
	case string, int, float64:
		say(to, key, v)
	default:
		say(to, key, fmt.Sprint(v))
	}
}

// taken reads when a picture was taken: its own time, with its zone where it has one; where EXIF has none by XMP and IPTC.
func (facts *Facts) taken(tags *imagemeta.Tags) {
	exif, xmp, iptc := tags.EXIF(), tags.XMP(), tags.IPTC()
	text := func(t imagemeta.TagInfo) string {
		s, _ := t.Value.(string)
		return strings.TrimSpace(s)
	}
	original := text(exif["DateTimeOriginal"])
	if original != "" {
		original += text(exif["OffsetTimeOriginal"])
	}
	day := text(iptc["DateCreated"])
	for range 2 { // an unknown month or day is 00 (IPTC-IIM 4.2, 2:55)
		day = strings.TrimSuffix(day, ":00")
	}
	facts.setFirst([]string{original, text(xmp["DateTimeOriginal"]), text(xmp["DateCreated"]), day + " " + text(iptc["TimeCreated"]), day, text(xmp["CreateDate"])}, "")
}
