package export

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// Whatever stands in labels and messages, the XML stays XML.
func TestHostileText(t *testing.T) {
	for _, text := range []string{"]]>", "<&\"'>", "a\x00b\x1b[31m", "\ufffe\uffff", "\xff\xfe", "\ud7ff", "line\r\nline"} {
		var out bytes.Buffer
		w := xmlWriter{out: bufio.NewWriter(&out)}
		w.start("a", "b", text)
		w.text("c", text)
		w.stop("a")
		if err := errors.Join(w.err, w.out.Flush()); err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(&out); ; {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
		}
		if got := quoted(text); strings.ContainsAny(got, "\x00\x1b\r\n") {
			t.Errorf("%q in Turtle: %s", text, got)
		}
	}
}

// A spreadsheet runs no cell.
func TestFormulas(t *testing.T) {
	for _, cell := range []string{"=1+1", "+1", "-1", "@x", "\tx", "\r=1", "\n=1+1", "＝1+1", "＠x"} {
		if got := Unformula(cell); got != "'"+cell {
			t.Errorf("%q is %q", cell, got)
		}
	}
	for _, cell := range []string{"", "a=1", "\xff", "é"} {
		if got := Unformula(cell); got != cell {
			t.Errorf("%q is %q", cell, got)
		}
	}
}
