package screen

import (
	"strings"
	"testing"
)

func TestTableClips(t *testing.T) {
	x := NewTable("item", "n", "steps", "why")
	x.Row("0a1b2c3d", 7, strings.Repeat("s", 90), strings.Repeat("w", 60))
	x.Row("0a1b2c3e", Figure("."), "short", "Übergröße")
	x.clip(80)
	var out strings.Builder
	if err := x.Print(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if n := len([]rune(lines[1])); n != 80 {
		t.Errorf("the widest row has %d characters, want 80: %q", n, lines[1])
	}
	if !strings.HasPrefix(lines[1], "0a1b2c3d  7  sss") || strings.Count(lines[1], "…") != 2 {
		t.Errorf("want both texts clipped and nothing else: %q", lines[1])
	}
	if !strings.HasPrefix(lines[2], "0a1b2c3e  .  short ") || !strings.HasSuffix(lines[2], "  Übergröße") {
		t.Errorf("what fits is clipped: %q", lines[2])
	}
	y := NewTable("a")
	y.Row(strings.Repeat("a", 30))
	y.clip(5)
	if got := y.rows[0][0]; got != strings.Repeat("a", clipLeast-1)+"…" {
		t.Errorf("clipped to %q, want %d characters", got, clipLeast)
	}
	y.clip(0)
}

// On a terminal that it is too wide for, a table keeps what it has to say.
func TestTableOnANarrowTerminal(t *testing.T) {
	x := NewTable("item", "lane", "label", "status", "why")
	long := "broken.tar.gz: truncated: the archive has no directory, as its end is missing " + strings.Repeat("0123456789", 10)
	x.Row("0a1b2c3d", "normal", "broken.tar.gz", "failed", long)
	x.Row("0a1b2c3e", "normal", strings.Repeat("l", 70), "completed", "")
	var out strings.Builder
	if err := x.printNarrow(&out, 80); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if lines[0] != "ITEM      LABEL"+strings.Repeat(" ", 56)+"STATUS" {
		t.Errorf("%q", lines[0])
	}
	for i, want := range []string{"0a1b2c3d  broken.tar.gz ", "    broken.tar.gz: truncated: the archive has no directory, as its end is", "    missing", "    0123456789", "0a1b2c3e  lllll"} {
		if !strings.HasPrefix(lines[i+1], want) {
			t.Errorf("line %d: %q", i+1, lines[i+1])
		}
	}
	for _, l := range lines {
		if n := len([]rune(l)); n > 80 && !strings.Contains(l, "0123456789") {
			t.Errorf("%d characters: %q", n, l)
		}
	}
}

// What would be copied from a narrow terminal is never cut; who did it goes first.
func TestWholeCellsOnANarrowTerminal(t *testing.T) {
	x := NewTable("step", "status", "attempt", "ended", "seconds", "by", "message")
	for range 2 {
		x.Row("descriptive-metadata", "completed", "1-5bb4c585 completed", "2026-11-23 18:16:19", Figure("0.049"), "archive-host-1:21246", "a message that is as long as messages are")
	}
	var out strings.Builder
	if err := x.printNarrow(&out, 80); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"descriptive-metadata", "1-5bb4c585 completed", "2026-11-23 18:16:19", "a message that is as long as messages are"} {
		if strings.Count(out.String(), want) != 2 {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "archive-host") {
		t.Errorf("%s", out.String())
	}
}
