package screen

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// manyRows is from how many rows on a table is laid out here: the library takes ten
// times as long, which is a second for a queue of 100,000.
const manyRows = 1000

// printLong prints the same as the library would, unless some cell is not plain text
// of one line; then it has printed nothing, and done is false.
func (t *Table) printLong(out io.Writer) (done bool, err error) {
	cells, widths, ok := t.layOut()
	if !ok {
		return false, nil
	}
	w := bufio.NewWriterSize(out, 1<<16)
	line := make([]byte, 0, 512)
	for row := range slices.Chunk(cells, len(t.header)) {
		line = line[:0]
		for c, cell := range row {
			space := widths[c] - cell.width
			if !t.texts[c] {
				line, space = appendSpaces(line, space), 0
			}
			line = appendSpaces(append(line, cell.text...), space+len(columnGap))
		}
		w.Write(append(bytes.TrimRight(line, " "), '\n')) //nolint:errcheck // Flush tells
	}
	return true, w.Flush()
}

type tableCell struct {
	text  string
	width int // as a terminal shows it
}

// layOut gives the cells, the heading's first, and the widths of the columns.
func (t *Table) layOut() (cells []tableCell, widths []int, ok bool) {
	widths, ok = make([]int, len(t.header)), true
	cells = make([]tableCell, 0, (len(t.rows)+1)*len(t.header))
	add := func(c int, s string) {
		cell := tableCell{s, len(s)}
		for i := range len(s) {
			if s[i] < ' ' || s[i] == 0x7f {
				ok = false
			}
			if s[i] >= 0x80 && cell.width == len(s) {
				cell.width = text.StringWidth(s)
			}
		}
		widths[c] = max(widths[c], cell.width)
		cells = append(cells, cell)
	}
	for c, h := range t.header {
		add(c, strings.ToUpper(fmt.Sprint(h)))
	}
	for _, r := range t.rows {
		for c := range t.header {
			if s, is := r[c].(string); is {
				add(c, s)
			} else {
				add(c, fmt.Sprint(r[c]))
			}
		}
	}
	return cells, widths, ok
}

const spaces = "                                                                "

func appendSpaces(b []byte, n int) []byte {
	for ; n > 0; n -= len(spaces) {
		b = append(b, spaces[:min(n, len(spaces))]...)
	}
	return b
}
