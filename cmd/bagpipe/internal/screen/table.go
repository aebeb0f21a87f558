package screen

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// Figure is a cell that reads as a number though it is a text: "0.014", "3d 4h", ".".
type Figure string

// Table prints columns without frames, so that other tools can read them. A column of
// numbers alone stands on the right, its heading too. On a terminal on which a row does
// not fit, columns that say the same everywhere are left out, then the widest texts stand
// whole on lines of their own below their rows, the next widest are clipped, and the last
// columns that do not fit even so stand below, too, under their headings. In a table without a
// heading, a name and what it is a row, what is long goes on below itself.
type Table struct {
	header []any
	rows   [][]any
	texts  []bool // by column: whether some cell is not a number
}

// NewTable makes a table of no rows under its heading.
func NewTable(header ...any) *Table {
	return &Table{header: header, texts: make([]bool, len(header))}
}

// Row adds a row; times in sentences are Local.
func (t *Table) Row(cells ...any) {
	for i := range t.texts {
		switch cell := cells[i].(type) {
		case int, int64, Figure:
		case string:
			t.texts[i], cells[i] = true, Local(cell)
		default:
			t.texts[i] = true
		}
	}
	t.rows = append(t.rows, cells)
}

// Print prints the table, clipped to the width of a terminal.
func (t *Table) Print(out io.Writer) error {
	width := terminalWidth(out)
	if width > 0 && len(t.header) == 0 {
		return t.printPairs(out, width)
	}
	if width > 0 && t.width() > width {
		return t.printNarrow(out, width)
	}
	if len(t.rows) >= manyRows {
		if done, err := t.printLong(out); done {
			return err
		}
	}
	return t.printAny(out)
}

func (t *Table) printAny(out io.Writer) error {
	w := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", columnGap
	style.Format.Header = text.FormatUpper
	w.SetStyle(style)
	w.AppendHeader(t.header)
	var columns []table.ColumnConfig
	for i, isText := range t.texts {
		align := text.AlignRight
		if isText || len(t.rows) == 0 {
			align = text.AlignLeft
		}
		columns = append(columns, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	w.SetColumnConfigs(columns)
	for _, r := range t.rows {
		w.AppendRow(r)
	}
	for line := range strings.Lines(w.Render()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

const (
	columnGap = "  "
	clipLeast = 16 // no column is clipped to less
)

// clip shortens the widest columns of texts until a row has width characters; 0: not.
func (t *Table) clip(width int) {
	if width <= 0 {
		return
	}
	widths := t.widths()
	for total := t.width(); total > width; total-- {
		widest := -1
		for i, isText := range t.texts {
			if isText && widths[i] > clipLeast && !t.isWhole(i) && (widest < 0 || widths[i] >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	for _, r := range t.rows {
		for i, isText := range t.texts {
			if s := fmt.Sprint(r[i]); isText && utf8.RuneCountInString(s) > widths[i] {
				r[i] = Short(s, widths[i])
			}
		}
	}
}

func (t *Table) isWhole(i int) bool {
	return i < len(t.header) && slices.Contains(whole, fmt.Sprint(t.header[i]))
}

// terminalWidth is how many characters fit on a line of out; 0 when it is no terminal.
func terminalWidth(out io.Writer) int {
	o, ok := out.(*Output)
	if !ok {
		return 0
	}
	f, ok := o.W.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
