package bags

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"
)

// version is a BagIt version that this package reads.
type version struct{ major, minor int }

var v1 = version{1, 0}

func (v version) before(o version) bool {
	return v.major < o.major || v.major == o.major && v.minor < o.minor
}

// versions are those ever published in general use. One that is not here may
// have other rules, so a bag that declares it cannot be called valid.
var versions = map[string]version{
	"0.93": {0, 93}, "0.94": {0, 94}, "0.95": {0, 95}, "0.96": {0, 96}, "0.97": {0, 97}, "1.0": v1,
}

// declaration is what bagit.txt says.
type declaration struct {
	version  string
	encoding string
	problems []declProblem
}

type declProblem struct {
	code   Code
	line   int
	text   string
	strict bool // an error in 1.0, a warning before
}

const (
	labelVersion  = "BagIt-Version"
	labelEncoding = "Tag-File-Character-Encoding"
)

var versionForm = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)

// parseDeclaration reads bagit.txt (RFC 8493, 2.1.1): exactly two lines, in
// order, UTF-8, no byte-order mark. Before 1.0 writers were looser; Stanford's
// deposits, for one, have the lines the other way round.
func parseDeclaration(data []byte) declaration {
	var d declaration
	if !utf8.Valid(data) {
		d.add(CodeDeclaration, 0, "the text is not UTF-8", false)
		return d
	}
	bom, err := eachLine(bytes.NewReader(data), nil, d.line)
	if err != nil {
		d.add(CodeDeclaration, 0, err.Error(), false)
	}
	if bom {
		d.add(CodeDeclarationBOM, 1, "begins with a byte-order mark", false)
	}
	if d.version == "" {
		d.add(CodeDeclaration, 0, "no "+labelVersion, false)
	}
	if d.encoding == "" {
		d.add(CodeDeclaration, 0, "no "+labelEncoding, false)
	}
	return d
}

func (d *declaration) line(l line) {
	if l.open {
		d.add(CodeLineEnd, l.number, "the last line has no line end", false)
	}
	if strings.TrimSpace(l.text) == "" {
		d.add(CodeDeclaration, l.number, "an empty line, where exactly two are allowed", true)
		return
	}
	label, value, ok := strings.Cut(l.text, ":")
	name := strings.TrimSpace(label)
	if exact := " " + strings.TrimSpace(value); ok && name != label {
		d.add(CodeDeclarationSpaces, l.number, "white space around the label", false)
	} else if ok && value != exact {
		d.add(CodeDeclarationSpaces, l.number, "want one space after the colon and none elsewhere", true)
	}
	value = strings.TrimSpace(value)
	switch {
	case ok && strings.EqualFold(name, labelVersion) && d.version == "" && versionForm.MatchString(value):
		d.version = value
		if d.encoding != "" {
			d.add(CodeDeclaration, l.number, labelVersion+" belongs on the first line", true)
		}
	case ok && strings.EqualFold(name, labelEncoding) && d.encoding == "" && value != "":
		d.encoding = value
	default:
		d.add(CodeDeclaration, l.number, "want "+labelVersion+": M.N and "+labelEncoding+": ENCODING, and nothing else", false)
		return
	}
	if name != labelVersion && name != labelEncoding {
		d.add(CodeDeclaration, l.number, "the label is spelled in other letters", true)
	}
}

func (d *declaration) add(code Code, line int, text string, strict bool) {
	d.problems = append(d.problems, declProblem{code, line, text, strict})
}
