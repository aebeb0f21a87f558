package tagfile

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"bagpipe/bags/finding"
)

// A Version of BagIt that can be read.
type Version struct{ major, minor int }

var (
	V096 = Version{0, 96}
	V1   = Version{1, 0}
)

// Before reports whether v was published before o.
func (v Version) Before(o Version) bool {
	return v.major < o.major || v.major == o.major && v.minor < o.minor
}

// Versions are those ever published in general use. Another may have other rules, so a
// bag that declares it cannot be called valid.
var Versions = map[string]Version{
	"0.93": {0, 93}, "0.94": {0, 94}, "0.95": {0, 95}, "0.96": {0, 96}, "0.97": {0, 97}, "1.0": V1,
}

// declaration holds the two lines of bagit.txt, and what is wrong with them.
type declaration struct {
	Version  string
	Encoding string
	Problems []declProblem
}

type declProblem struct {
	Code   finding.Code
	Line   int
	Text   string
	Strict bool // an error in 1.0, a warning before
}

const (
	LabelVersion  = "BagIt-Version"
	LabelEncoding = "Tag-File-Character-Encoding"
)

var versionForm = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)

// ParseDeclaration reads bagit.txt (RFC 8493, 2.1.1): exactly two lines, in order,
// UTF-8, no byte-order mark. Before 1.0 writers were looser; Stanford's deposits, for
// one, have the lines the other way round.
func ParseDeclaration(data []byte) declaration {
	var d declaration
	if !utf8.Valid(data) {
		d.add(finding.Declaration, 0, "the text is not UTF-8", false)
		return d
	}
	bom, err := EachLine(bytes.NewReader(data), nil, d.line)
	if err != nil {
		d.add(finding.Declaration, 0, err.Error(), false)
	}
	if bom {
		d.add(finding.DeclarationBOM, 1, "begins with a byte-order mark", false)
	}
	if d.Version == "" {
		d.add(finding.Declaration, 0, "no "+LabelVersion, false)
	}
	if d.Encoding == "" {
		d.add(finding.Declaration, 0, "no "+LabelEncoding, false)
	}
	return d
}

func (d *declaration) line(l Line) {
	if l.Open {
		d.add(finding.LineEnd, l.Number, "the last line has no line end", false)
	}
	if strings.TrimSpace(l.Text) == "" {
		d.add(finding.Declaration, l.Number, "an empty line, where exactly two are allowed", true)
		return
	}
	label, value, ok := strings.Cut(l.Text, ":")
	name := strings.TrimSpace(label)
	if exact := " " + strings.TrimSpace(value); ok && name != label {
		d.add(finding.DeclarationSpaces, l.Number, "white space around the label", false)
	} else if ok && value != exact {
		d.add(finding.DeclarationSpaces, l.Number, "want one space after the colon and none elsewhere", true)
	}
	value = strings.TrimSpace(value)
	switch {
	case ok && strings.EqualFold(name, LabelVersion) && d.Version == "" && versionForm.MatchString(value):
		d.Version = value
		if d.Encoding != "" {
			d.add(finding.Declaration, l.Number, LabelVersion+" belongs on the first line", true)
		}
	case ok && strings.EqualFold(name, LabelEncoding) && d.Encoding == "" && value != "":
		d.Encoding = value
	default:
		d.add(finding.Declaration, l.Number, "want "+LabelVersion+": M.N and "+LabelEncoding+": ENCODING, and nothing else", false)
		return
	}
	if name != LabelVersion && name != LabelEncoding {
		d.add(finding.Declaration, l.Number, "the label is spelled in other letters", true)
	}
}

func (d *declaration) add(code finding.Code, line int, text string, strict bool) {
	d.Problems = append(d.Problems, declProblem{code, line, text, strict})
}
