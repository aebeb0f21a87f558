package tagfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"bagpipe/layout/disk"

	"golang.org/x/text/encoding"
)

// Field is one element of bag-info.txt. Labels may be repeated; their order is
// kept.
type Field struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// Labels Bagpipe writes itself.
const (
	LabelBaggingDate = "Bagging-Date"
	LabelOxum        = "Payload-Oxum"
	LabelSize        = "Bag-Size"
	LabelAgent       = "Bag-Software-Agent"
)

// infoProblem is one line of bag-info.txt that is not as it should be.
type infoProblem struct {
	Line   int
	Text   string
	Strict bool // wrong in 1.0 alone; before, it was allowed
}

// mostProblems bounds the problems that are kept of one file.
const mostProblems = 200_000

// infoMost bounds what is kept of a bag-info.txt, which people write for people.
const infoMost = 16 << 20

// An InfoParser collects fields line by line; Done ends it.
type InfoParser struct {
	Fields   []Field
	Problems []infoProblem
	Empty    []int           // lines
	size     int             // of the lines so far
	value    strings.Builder // of the last field: it may be folded into many lines
}

// Done gives the last field its value.
func (p *InfoParser) Done() {
	if n := len(p.Fields); n > 0 {
		p.Fields[n-1].Value = p.value.String()
	}
	p.value.Reset()
}

// Line takes one line.
func (p *InfoParser) Line(l Line) {
	before := p.size
	if p.size += len(l.Text) + 1; p.size > infoMost {
		if before <= infoMost {
			p.problem(l, fmt.Sprintf("what follows is not read: there are more than %d bytes", infoMost), false)
		}
		return
	}
	if l.Text == "" {
		if len(p.Empty) < mostProblems {
			p.Empty = append(p.Empty, l.Number)
		}
		return
	}
	if l.Text[0] == ' ' || l.Text[0] == '\t' {
		p.fold(l)
		return
	}
	label, value, ok := strings.Cut(l.Text, ":")
	if !ok {
		p.problem(l, "no label and colon", false)
		return
	}
	if trimmed := strings.TrimRight(label, " \t"); trimmed != label {
		p.problem(l, "white space before the colon", true)
		label = trimmed
	}
	if label == "" {
		p.problem(l, "no label before the colon", false)
		return
	}
	if value != "" && value[0] != ' ' && value[0] != '\t' {
		p.problem(l, "no space after the colon", true)
	}
	p.Done()
	p.Fields = append(p.Fields, Field{Label: label})
	p.value.WriteString(strings.Trim(value, " \t"))
}

func (p *InfoParser) fold(l Line) {
	if len(p.Fields) == 0 {
		p.problem(l, "a continued line with nothing to continue", false)
		return
	}
	more := strings.Trim(l.Text, " \t")
	if p.value.Len() > 0 && more != "" {
		p.value.WriteByte(' ')
	}
	p.value.WriteString(more)
}

func (p *InfoParser) problem(l Line, text string, strict bool) {
	if len(p.Problems) < mostProblems {
		p.Problems = append(p.Problems, infoProblem{l.Number, text, strict})
	}
}

// ReadInfo reads the text of a bag-info.txt in UTF-8 leniently: what cannot be
// read is passed over (Validate reports it).
func ReadInfo(r io.Reader) ([]Field, error) { return readInfo(r, nil) }

func readInfo(r io.Reader, enc encoding.Encoding) ([]Field, error) {
	var p InfoParser
	if _, err := EachLine(r, enc, p.Line); err != nil {
		return nil, fmt.Errorf("read bag-info.txt: %w", err)
	}
	p.Done()
	return p.Fields, nil
}

// BagInfo gives the bag-info of the bag in dir, in the encoding its bagit.txt
// declares. A bag without one, or with one that is no text, has none.
func BagInfo(dir string) ([]Field, error) {
	data, err := disk.ReadFile(filepath.Join(dir, DeclarationFile))
	if err != nil {
		return nil, fmt.Errorf("read bag-info: %w", err)
	}
	enc, _ := EncodingOf(ParseDeclaration(data).Encoding)
	for _, name := range []string{InfoFile, OldInfoFile} {
		f, err := disk.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read bag-info: %w", err)
		}
		defer f.Close()
		src := &NoteReader{R: f}
		fields, err := readInfo(src, enc)
		if src.Err != nil {
			return nil, fmt.Errorf("read bag-info: %w", src.Err)
		}
		if err != nil {
			return nil, nil
		}
		return fields, nil
	}
	return nil, nil
}

const infoWidth = 79

// WriteInfo writes fields in their order, long values folded at spaces.
func WriteInfo(w io.Writer, fields []Field) error {
	for _, f := range fields {
		if _, err := io.WriteString(w, foldField(f)); err != nil {
			return err
		}
	}
	return nil
}

// foldField breaks at single spaces only, so that unfolding gives the value
// back. A line end in a value, and any other control character, becomes a space:
// the format cannot hold it.
func foldField(f Field) string {
	value := strings.Join(strings.FieldsFunc(f.Value, isLineControl), " ")
	var b strings.Builder
	b.WriteString(f.Label)
	b.WriteString(": ")
	width := len(f.Label) + 2
	parts := strings.Split(strings.Trim(value, " \t"), " ")
	for i, part := range parts {
		single := i > 0 && part != "" && parts[i-1] != ""
		switch {
		case i == 0:
		case single && width+1+len(part) > infoWidth:
			b.WriteString("\n  ")
			width = 2
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(part)
		width += len(part)
	}
	b.WriteByte('\n')
	return b.String()
}

// unwritable also holds the byte-order mark, which would be lost at the beginning
// of the file.
func unwritable(r rune) bool { return isLineControl(r) || r == '\ufeff' }

func isLineControl(r rune) bool {
	return r < 0x20 && r != '\t' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029
}

// Check reports whether the label can be written.
func (f Field) Check() error {
	if f.Label == "" || strings.Contains(f.Label, ":") || strings.ContainsFunc(f.Label, unwritable) ||
		!utf8.ValidString(f.Label) || strings.TrimSpace(f.Label) != f.Label {
		return fmt.Errorf("bag-info label %q: want text without a colon, control characters or white space around it", f.Label)
	}
	return nil
}

// SameLabel reports whether two labels are one: their case does not count.
func SameLabel(a, b string) bool { return strings.EqualFold(a, b) }

// FormatSize writes a size as Bag-Size has it: 42.6 GB, powers of 1000.
func FormatSize(n int64) string {
	units := []string{"bytes", "KB", "MB", "GB", "TB", "PB"}
	f, i := float64(n), 0
	for ; f >= 1000 && i < len(units)-1; i++ {
		f /= 1000
	}
	if n == 1 {
		return "1 byte"
	}
	if i == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
