package screen

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// A long table is laid out as the library lays it out.
func TestLongTableIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SampledFrom([]string{"", "a", "letter 12", "  in", "out  ", "Ümläut", "日本", "a\u0301", "e\u200bf", "x\ty", "two\nlines", "\x1b[31mred", "\xff", "…", "🙂 b"})
		plain := rapid.SampledFrom([]string{"", "a", "letter 12", "out  ", "Ümläut", "日本", "longer than the heading"})
		cells := rapid.SampledFrom([]*rapid.Generator[string]{texts, plain}).Draw(t, "cells")
		table := NewTable("Item", "n", "größe", "")
		for range rapid.IntRange(1, 8).Draw(t, "rows") {
			table.Row(cells.Draw(t, "a"), rapid.IntRange(0, 20000).Draw(t, "n"), Figure(cells.Draw(t, "b")), cells.Draw(t, "c"))
		}
		var want, got bytes.Buffer
		if err := table.printAny(&want); err != nil {
			t.Fatal(err)
		}
		done, err := table.printLong(&got)
		if err != nil {
			t.Fatal(err)
		}
		if !done && got.Len() > 0 {
			t.Fatal("it was printed in part")
		}
		if done && got.String() != want.String() {
			t.Fatalf("the library prints\n%q\nand this\n%q", want.String(), got.String())
		}
	})
}
