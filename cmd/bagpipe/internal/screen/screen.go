package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Screen is where a command reads and prints.
type Screen struct {
	In  io.Reader
	Out *Output
	Err io.Writer
}

// Around is a folder around which a workspace may stand.
type Around string

// Talk prints a line on standard error, as Plain has it.
func (s *Screen) Talk(format string, args ...any) {
	fmt.Fprintln(s.Err, Plain(fmt.Sprintf(format, args...)))
}

// JSON prints v as one indented document.
func (s *Screen) JSON(v any) error {
	var compact bytes.Buffer
	if err := encode(&compact, v); err != nil {
		return err
	}
	_, err := s.Out.Write(appendIndented(make([]byte, 0, 3*compact.Len()), compact.Bytes()))
	return err
}

// JSONLine prints v on a line.
func (s *Screen) JSONLine(v any) error { return encode(s.Out, v) }

// Event prints an event on a line of standard output.
func (s *Screen) Event(name string, v map[string]any) { s.EventTo(s.Out, name, v) }

// EventTo prints an event on a line of w. That it could not be printed is said, and does
// not end the work that it tells of.
func (s *Screen) EventTo(w io.Writer, name string, v map[string]any) {
	v["event"] = name
	if err := encode(w, v); err != nil {
		s.Talk("bagpipe: %v", err)
	}
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// mostLines is how many lines of a list are printed.
const mostLines = 50

// List prints at most some lines under a heading, and how many more; advice stands in the
// heading of a list that is cut.
func (s *Screen) List(heading string, lines []string, advice ...string) {
	if len(lines) == 0 {
		return
	}
	if len(lines) > mostLines {
		for _, text := range advice {
			heading += " (" + text + ")"
		}
	}
	fmt.Fprintf(s.Out, "\n%s:\n", heading)
	for i, l := range lines {
		if i == mostLines {
			fmt.Fprintf(s.Out, "  … and %d more (--json lists all)\n", len(lines)-mostLines)
			return
		}
		fmt.Fprintf(s.Out, "  %s\n", l)
	}
}
