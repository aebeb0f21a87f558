package screen

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode/utf8"
)

// Screen is where a command reads and prints.
type Screen struct {
	In  io.Reader
	Out *Output
	Err io.Writer
	Log *slog.Logger // what is said is logged as well; nil: it is not
}

// Around is a folder around which a workspace may stand.
type Around string

// Talk prints a line on standard error, as Plain has it.
func (s *Screen) Talk(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.Say(text)
	if s.Log == nil {
		return
	}
	level := slog.LevelInfo
	for prefix, l := range map[string]slog.Level{"warning: ": slog.LevelWarn, "bagpipe: ": slog.LevelError} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			level, text = l, rest
		}
	}
	s.Log.Log(context.Background(), level, text)
}

// Say is Talk of what is logged otherwise.
func (s *Screen) Say(text string) { fmt.Fprintln(s.Err, s.Line(text)) }

// Line is a text as it is said: Plain, its times Local, and in colour where that is seen.
func (s *Screen) Line(text string) string {
	if text = Plain(Local(text)); Colours(s.Err) {
		return paint(text)
	}
	return text
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
	fmt.Fprintf(s.Out, "\n%s:\n", strings.Join(s.lines(heading), "\n"))
	for i, l := range lines {
		if i == mostLines {
			fmt.Fprintf(s.Out, "  … and %d more (--json lists all)\n", len(lines)-mostLines)
			return
		}
		for k, part := range s.lines(l) {
			fmt.Fprintf(s.Out, "%s%s\n", strings.Repeat("  ", 1+min(k, 1)), part)
		}
	}
}

// lines has the times of a line Local, and breaks it at spaces where a narrow terminal has no room for it, below which its rest is set in.
func (s *Screen) lines(text string) []string {
	text = Local(text)
	width := terminalWidth(s.Out)
	if !Narrow(s.Out) || utf8.RuneCountInString(text)+len(belowIndent) <= width {
		return []string{text}
	}
	return broken(text, width-len(belowIndent))
}
