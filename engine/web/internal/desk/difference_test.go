package desk

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// What a difference takes away and adds makes the one text of the other.
func TestDifference(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 2))
	some := func() (lines []string) {
		for range r.IntN(30) {
			lines = append(lines, fmt.Sprint("line ", r.IntN(8)))
		}
		return lines
	}
	for range 2000 {
		a, b := some(), some()
		var before, after []string
		for _, c := range middle(a, b, 4000) {
			if c.Sign != "+" {
				before = append(before, c.Text)
			}
			if c.Sign != "-" {
				after = append(after, c.Text)
			}
		}
		if strings.Join(before, "\n") != strings.Join(a, "\n") || strings.Join(after, "\n") != strings.Join(b, "\n") {
			t.Fatalf("%q to %q: %q, %q", a, b, before, after)
		}
	}
	got := Difference("one\ntwo\nthree\nfour\nfive\nsix\n", "one\ntwo\nthree\nfour\nfive!\nsix\n")
	want := []Changed{{"…", ""}, {" ", "three"}, {" ", "four"}, {"-", "five"}, {"+", "five!"}, {" ", "six"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Difference("", "a\n"); fmt.Sprint(got) != "[{+ a}]" {
		t.Errorf("of nothing: %v", got)
	}
}
