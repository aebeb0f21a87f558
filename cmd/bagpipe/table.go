package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// json prints v as one indented document.
func (a *app) json(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// figure is a cell that reads as a number though it is a text: "0.014", "3d 4h", ".".
type figure string

// tableWriter prints columns without frames, so that other tools can read them. A
// column of numbers alone stands on the right, its heading too.
type tableWriter struct {
	w     table.Writer
	texts []bool // by column: whether some cell is not a number
}

func newTable(header ...any) tableWriter {
	w := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatUpper
	w.SetStyle(style)
	w.AppendHeader(header)
	return tableWriter{w, make([]bool, len(header))}
}

func (t tableWriter) row(cells ...any) {
	for i := range t.texts {
		switch cells[i].(type) {
		case int, int64, figure:
		default:
			t.texts[i] = true
		}
	}
	t.w.AppendRow(cells)
}

func (t tableWriter) print(out io.Writer) error {
	var columns []table.ColumnConfig
	for i, isText := range t.texts {
		align := text.AlignRight
		if isText || t.w.Length() == 0 {
			align = text.AlignLeft
		}
		columns = append(columns, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	t.w.SetColumnConfigs(columns)
	for line := range strings.Lines(t.w.Render()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// when shows a time to people in their own zone.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// fit clips s for a table on a terminal; where another program reads, all of it
// is printed.
func (a *app) fit(s string, most int) string {
	if f, ok := a.out.w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return short(s, most)
	}
	return s
}

// short clips a message to one line of a table.
func short(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return strings.TrimRight(string(r[:most-1]), "…") + "…"
}
