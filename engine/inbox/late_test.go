package inbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/inbox/internal/content"
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
		if err := b.writeTaking(takenDir, drop, taking{At: start.Add(-c.taken), Drop: item, Item: item, Path: b.shorten(drop)}); err != nil {
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

// What another engine takes between the look at it and the note of it is no rest of itself.
func TestLateIsNotWhatAnotherTakes(t *testing.T) {
	w := newBench(t)
	w.drop("tape")
	w.later(3 * time.Second)
	d := w.settled("tape")
	p, err := w.openPlace(&findings{present: map[string]bool{}, listed: map[string]time.Time{}}, d.Collection, filepath.Dir(d.Path))
	if err != nil {
		t.Fatal(err)
	}
	taken, err := w.Take(t.Context(), d, Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	w.promoted(taken)
	n, _ := w.readTaking(takenDir, d.Path)
	survey := content.Survey{Files: 1, Oldest: n.At}
	if got, late := p.lateFor(t.Context(), d, survey); late {
		t.Errorf("the drop itself: %s", got.Reason)
	}
	w.write("inbox/default/tape/2.mov", "two")
	if _, late := p.lateFor(t.Context(), d, survey); !late {
		t.Error("the rest of it is not late")
	}
}

// A loose file that comes after the set was taken that it belongs to is told of, and no drop of its own; so is
// one that makes the file which was taken alone a whole set. What comes with a marker, what the rules join with
// neither, and the whole set once more are drops like any other.
func TestLateForASet(t *testing.T) {
	w := newSetBench(t)
	taken := func(of Taken, at time.Time) {
		t.Helper()
		for _, dir := range []string{takenDir, joinedDir} {
			if n, ok := w.readTaking(dir, of.Origin); ok {
				n.At = at
				if err := w.writeTaking(dir, of.Origin, n); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	take := func(name string) Taken {
		t.Helper()
		got, err := w.Take(t.Context(), w.settled(name), Ticket{})
		if err != nil {
			t.Fatal(err)
		}
		got = w.promoted(got)
		if err := w.Done(got); err != nil {
			t.Fatal(err)
		}
		taken(got, time.Now()) // files have the machine's time, and the Box is ahead of it
		return got
	}
	late := func(name string, of Taken, ofName string) {
		t.Helper()
		w.later(3 * time.Second)
		f, err := w.Scan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range f.Waiting {
			if x.Name == name && x.Barred && strings.HasPrefix(x.Reason, "late: "+ofName+" was taken in as item "+of.ID.Short()) && len(x.Remedies) == 2 {
				return
			}
		}
		t.Errorf("%s is not late: settled %v, waiting %v", name, f.Settled, f.Waiting)
	}
	w.dropSet("inbox/default", "map")
	w.later(3 * time.Second)
	set := take("map")
	w.write("inbox/default/map.prj", "x")
	w.write("inbox/default/letter.txt", "x")
	late("map.prj", set, "map")
	take("letter.txt")

	w.write("inbox/default/map.prj.ready", "")
	w.settled("map.prj")
	if err := os.Remove(w.path("inbox/default/map.prj.ready")); err != nil {
		t.Fatal(err)
	}
	late("map.prj", set, "map")
	w.dropSet("inbox/default", "map")
	w.later(3 * time.Second)
	if d := w.settled("map"); d.Files != 6 {
		t.Errorf("the set once more has %d files", d.Files)
	}
	again := take("map")

	w.write("inbox/default/plan.tif", "x")
	w.later(3 * time.Second)
	alone := take("plan.tif")
	w.write("inbox/default/plan.xml", "x") // would not have made a set of it
	w.later(3 * time.Second)
	take("plan.xml")
	w.write("inbox/default/plan.tfw", "x")
	late("plan.tfw", alone, "plan.tif")

	taken(again, time.Now().Add(-time.Hour))
	w.write("inbox/default/map.ovr", "x")
	w.later(3 * time.Second)
	w.settled("map.ovr")
	for range 2 {
		w.later(time.Hour)
		w.scan()
	}
	if notes, err := os.ReadDir(w.path(joinedDir)); err != nil || len(notes) > 0 {
		t.Errorf("notes are left: %v, %v", notes, err)
	}
}
