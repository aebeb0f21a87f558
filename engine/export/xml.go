package export

import (
	"bufio"
	"encoding/xml"
	"strings"
	"unicode/utf8"
)

// xmlWriter writes elements one by one. What XML 1.0 cannot hold becomes U+FFFD.
type xmlWriter struct {
	out   *bufio.Writer
	depth int
	err   error
}

func (w *xmlWriter) raw(s string) {
	if w.err == nil {
		_, w.err = w.out.WriteString(s)
	}
}

func (w *xmlWriter) escaped(s string) {
	switch {
	case w.err != nil:
	case asIs(s):
		_, w.err = w.out.WriteString(s)
	default:
		w.err = xml.EscapeText(w.out, []byte(plain(s)))
	}
}

// asIs reports whether nothing of a text is escaped, as of most.
func asIs(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\'' || c == '&' || c == '<' || c == '>' {
			return false
		}
	}
	return true
}

// plain leaves what XML 1.0 can hold (section 2.2).
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r', r >= ' ' && r <= 0xd7ff, r >= 0xe000 && r <= 0xfffd, r >= 0x10000:
			return r
		}
		return utf8.RuneError
	}, s)
}

func (w *xmlWriter) start(name string, attributes ...string) {
	w.open(name, attributes)
	w.raw(">")
	w.depth++
}

// empty is an element without content.
func (w *xmlWriter) empty(name string, attributes ...string) {
	w.open(name, attributes)
	w.raw("/>")
}

func (w *xmlWriter) open(name string, attributes []string) {
	w.line("<", name)
	for i := 0; i+1 < len(attributes); i += 2 {
		w.raw(" ")
		w.raw(attributes[i])
		w.raw(`="`)
		w.escaped(attributes[i+1])
		w.raw(`"`)
	}
}

// line begins a line with a mark and a name.
func (w *xmlWriter) line(mark, name string) {
	w.raw("\n")
	for range w.depth {
		w.raw("  ")
	}
	w.raw(mark)
	w.raw(name)
}

func (w *xmlWriter) stop(name string) {
	w.depth--
	w.line("</", name)
	w.raw(">")
}

// text is an element of text alone; of none it writes nothing.
func (w *xmlWriter) text(name, value string, attributes ...string) {
	if value == "" {
		return
	}
	w.start(name, attributes...)
	w.escaped(value)
	w.depth--
	w.raw("</")
	w.raw(name)
	w.raw(">")
}
