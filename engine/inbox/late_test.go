package inbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/layout"
)

// What begins later than the rest of a copy would is a drop like any other, and so is
// what is older than the taking.
func TestLateWithin(t *testing.T) {
	const item = layout.ItemID("3fa9c0d2e1b7a45")
	for _, c := range []struct {
		name  string
		quiet time.Duration
		taken time.Duration // before now
		late  bool
	}{
		{"within ten minutes", time.Second, 9 * time.Minute, true},
		{"after ten minutes", time.Second, 11 * time.Minute, false},
		{"within ten times a long quiet", 2 * time.Minute, 19 * time.Minute, true},
		{"after ten times a long quiet", 2 * time.Minute, 21 * time.Minute, false},
		{"before it", time.Second, -time.Minute, false},
	} {
		root := t.TempDir()
		drop := filepath.Join(root, layout.InboxDir, "default", "tape")
		for _, dir := range []string{drop, filepath.Join(root, layout.ItemDir(item), layout.SourceDir, "tape")} {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(drop, "2.mov"), []byte("two"), 0o666); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		b, err := New(Options{Root: root, Settling: Settling{Quiet: c.quiet}, Now: func() time.Time { return start.Add(time.Hour) }})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.writeTaking(drop, taking{At: start.Add(-c.taken), Drop: item, Item: item, Path: b.shorten(drop)}); err != nil {
			t.Fatal(err)
		}
		f, err := b.Scan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		late := len(f.Waiting) == 1 && strings.HasPrefix(f.Waiting[0].Reason, "late: ") && f.Waiting[0].Barred
		if late != c.late || len(f.Settled)+len(f.Waiting) != 1 {
			t.Errorf("%s: late %v, %d settled, waiting %v", c.name, late, len(f.Settled), f.Waiting)
		}
	}
}
