package describe

import (
	"fmt"
	"math"
	"path"
	"strings"
	"time"

	"bagpipe/steps/space"
)

// The kinds of files, the most telling first.
const (
	Raster   = "raster"
	Vector   = "vector"
	Image    = "image"
	Document = "document"
	Video    = "video"
	Audio    = "audio"
	Metadata = "metadata" // a side-car
)

var kinds = []string{Raster, Vector, Image, Document, Video, Audio, Metadata}

// Request names a file and those beside it that share its name up to a point: by what
// follows that name, in lower case: ".tfw", ".tif.aux.xml".
type Request struct {
	Path     string            `json:"path"`
	Name     string            `json:"name"`
	Beside   map[string]string `json:"beside"`
	Business map[string]string `json:"business"` // further XPaths, by the key that gets their values
	Now      time.Time         `json:"now"`      // no picture was taken later
}

// Facts are what one file says.
type Facts struct {
	Kind     string         `json:"kind"`
	Entity   map[string]any `json:"entity,omitempty"`
	Business map[string]any `json:"business,omitempty"`
	Time     *Time          `json:"time,omitempty"`
	Space    *space.Space   `json:"space,omitempty"`
	Warnings []string       `json:"warnings,omitempty"`
	Error    string         `json:"error,omitempty"` // why the file could not be read

	led bool // its footprint has longitudes that are not the file's, as it was led across the antimeridian or a pole
}

func (f *Facts) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

// say keeps a value that says something.
func say(to map[string]any, key string, value any) {
	switch v := value.(type) {
	case string:
		if v = clean(v); v != "" {
			to[key] = v
		}
	case int:
		if v != 0 {
			to[key] = v
		}
	case float64: // JSON has but numbers
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			to[key] = v
		}
	default:
		to[key] = v
	}
}

// maxValue is how many bytes of a text are kept.
const maxValue = 2000

// clean gives text as it may stand in a record: valid, without control characters, short.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxValue {
		s = strings.ToValidUTF8(s[:maxValue], "") + "…"
	}
	return s
}

var kindsByEnding = map[string]string{".tif": Raster, ".tiff": Raster, ".shp": Vector, ".pdf": Document,
	".jpg": Image, ".jpeg": Image, ".png": Image, ".webp": Image, ".heic": Image, ".heif": Image, ".avif": Image, ".dng": Image, ".gif": Image,
	".mp3": Audio, ".flac": Audio, ".ogg": Audio, ".oga": Audio, ".opus": Audio, ".m4a": Audio, ".mka": Audio, ".wav": Audio, ".wave": Audio, ".bwf": Audio, ".aif": Audio, ".aiff": Audio, ".aifc": Audio,
	".mp4": Video, ".mov": Video, ".m4v": Video, ".mkv": Video, ".webm": Video, ".avi": Video, ".xml": Metadata}

// KindOf is the kind of a file by its name; "" where nothing is read of it.
func KindOf(name string) string {
	name = strings.ToLower(name)
	if strings.HasSuffix(name, ".aux.xml") {
		return ""
	}
	return kindsByEnding[path.Ext(name)]
}
