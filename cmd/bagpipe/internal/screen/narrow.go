package screen

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// widths are those of the columns.
func (t *Table) widths() []int {
	widths := make([]int, len(t.texts))
	for i := range widths {
		if i < len(t.header) {
			widths[i] = utf8.RuneCountInString(fmt.Sprint(t.header[i]))
		}
		for _, r := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(fmt.Sprint(r[i])))
		}
	}
	return widths
}

// width is that of a row.
func (t *Table) width() int {
	total := -len(columnGap)
	for _, w := range t.widths() {
		total += w + len(columnGap)
	}
	return total
}

// dull are the columns that are left out where they say the same in every row; others are
// where they say nothing in any.
var (
	dull    = []string{"lane", "collection", "workflow"}
	nothing = []string{"", ".", "0", "0s"}
)

// spare are the columns that go first where all of them do not fit; whole are those whose cells
// say nothing when they are cut: they are copied, or read to the last character.
var (
	spare = []string{"by", "engine"}
	whole = []string{"item", "attempt", "ended", "due", "next", "last", "since", "rule", "schedule", "name", "step"}
)

// printNarrow prints a table on a terminal that it is too wide for.
func (t *Table) printNarrow(out io.Writer, width int) error {
	for i := len(t.header) - 1; i >= 0 && t.width() > width; i-- {
		if len(t.rows) > 1 && t.says(i) && (slices.Contains(dull, fmt.Sprint(t.header[i])) || slices.Contains(nothing, fmt.Sprint(t.rows[0][i]))) {
			t.remove(i)
		}
	}
	var below []string
	if t.width() > width {
		below = t.moveBelow()
	}
	for i := len(t.header) - 1; i >= 0 && t.width() > width; i-- {
		if slices.Contains(spare, fmt.Sprint(t.header[i])) {
			t.remove(i)
		}
	}
	if t.width() > width {
		t.clip(width)
	}
	below = t.restBelow(width, below)
	for n, r := range t.rows { // a row is a line
		for i := range r {
			if s, is := r[i].(string); is {
				t.rows[n][i] = strings.ReplaceAll(s, "\n", " ")
			}
		}
	}
	var lines bytes.Buffer
	if err := t.printAny(&lines); err != nil {
		return err
	}
	first := 0
	if len(t.header) > 0 {
		first = 1
	}
	for i, line := range strings.Split(strings.TrimSuffix(lines.String(), "\n"), "\n") {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
		if n := i - first; n >= 0 && n < len(below) {
			if err := printBelow(out, below[n], width); err != nil {
				return err
			}
		}
	}
	return nil
}

// says reports whether a column is the same in every row.
func (t *Table) says(i int) bool {
	for _, r := range t.rows[1:] {
		if fmt.Sprint(r[i]) != fmt.Sprint(t.rows[0][i]) {
			return false
		}
	}
	return true
}

func (t *Table) remove(i int) {
	if i < len(t.header) {
		t.header = slices.Delete(slices.Clone(t.header), i, i+1)
	}
	t.texts = slices.Delete(t.texts, i, i+1)
	for n, r := range t.rows {
		t.rows[n] = slices.Delete(slices.Clone(r), i, i+1)
	}
}

// moveBelow takes the widest texts out of the table.
func (t *Table) moveBelow() (below []string) {
	widest, widths := -1, t.widths()
	for i, w := range widths {
		if t.texts[i] && (widest < 0 || w >= widths[widest]) {
			widest = i
		}
	}
	if widest < 0 || len(t.texts) < 2 || widths[widest] <= clipLeast {
		return nil
	}
	for _, r := range t.rows {
		below = append(below, fmt.Sprint(r[widest]))
	}
	t.remove(widest)
	return below
}

// restBelow takes the last columns out of a table that is too wide still, and puts them before what
// stands below.
func (t *Table) restBelow(width int, below []string) []string {
	rest := make([]string, len(t.rows))
	for i := len(t.header) - 1; i > 0 && t.width() > width; i-- {
		for n, r := range t.rows {
			if cell := fmt.Sprint(r[i]); cell != "" {
				rest[n] = strings.TrimSuffix(fmt.Sprintf("%v %s, %s", t.header[i], cell, rest[n]), ", ")
			}
		}
		t.remove(i)
	}
	if below == nil {
		return rest
	}
	for n := range below {
		if rest[n] != "" {
			below[n] = rest[n] + "\n" + below[n]
		}
	}
	return below
}

// printPairs prints rows of a name and what it is; what does not fit goes on below itself.
func (t *Table) printPairs(out io.Writer, width int) error {
	names := 0
	for _, r := range t.rows {
		names = max(names, utf8.RuneCountInString(fmt.Sprint(r[0])))
	}
	for _, r := range t.rows {
		beside := strings.Repeat(" ", names) + columnGap
		lines := broken(fmt.Sprint(r[1]), width-len(beside))
		if slices.ContainsFunc(lines, func(line string) bool { return utf8.RuneCountInString(line) > width-len(beside) }) {
			beside, lines = belowIndent, append([]string{""}, broken(fmt.Sprint(r[1]), width-len(belowIndent))...)
		}
		first := fmt.Sprintf("%-*v%s%s", names, r[0], columnGap, lines[0])
		for i, line := range append([]string{first}, lines[1:]...) {
			if i > 0 {
				line = beside + line
			}
			if _, err := fmt.Fprintln(out, strings.TrimRight(line, " ")); err != nil {
				return err
			}
		}
	}
	return nil
}

// broken breaks a text at spaces into lines of at most width characters, one at least; a longer word
// has a line of its own, and is whole: it may be copied.
func broken(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// Narrow reports whether out is a terminal of fewer than 120 columns.
func Narrow(out io.Writer) bool {
	width := terminalWidth(out)
	return width > 0 && width < 120
}

// Below prints a text below a table, broken at spaces to the terminal's width.
func Below(out io.Writer, text string) error { return printBelow(out, text, terminalWidth(out)) }

const belowIndent = "    "

// printBelow prints the lines of a text below a row, broken at spaces where they are too long.
func printBelow(out io.Writer, text string, width int) error {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		for _, part := range broken(line, width-len(belowIndent)) {
			if _, err := fmt.Fprintln(out, belowIndent+part); err != nil {
				return err
			}
		}
	}
	return nil
}
