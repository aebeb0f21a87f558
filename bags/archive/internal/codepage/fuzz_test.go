package codepage

import (
	"testing"
	"unicode/utf8"
)

func FuzzCodePage(f *testing.F) {
	f.Add("Gr\x94\xe1e.txt")
	f.Add("\x93\xfa\x96\x7b")
	f.Fuzz(func(t *testing.T, stored string) {
		n, _, err := New("", []string{stored})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Decode(stored); got != stored && !utf8.ValidString(got) {
			t.Fatalf("%q became %q", stored, got)
		}
	})
}
