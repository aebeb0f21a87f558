package inbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
)

// set gives the default collection's rules of settling anew.
func (w *bench) set(s Settling) {
	w.t.Helper()
	opt := w.opt
	opt.Settling = s
	b, err := New(opt)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Box = b
}

func (w *bench) reason(name string) string {
	w.t.Helper()
	_, waiting, _ := w.scan()
	for _, x := range waiting {
		if x.Name == name {
			return x.Reason
		}
	}
	w.t.Fatalf("%q does not wait", name)
	return ""
}

// A marker settles a drop at once, until the drop changes; it goes with the drop.
func TestMarkerSettlesAtOnce(t *testing.T) {
	w := newBench(t)
	w.atOnce()
	w.drop("letters")
	w.write("inbox/default/photos.zip", "PK")
	w.wantScan(nil, []string{"letters", "photos.zip"}, nil)
	w.write("inbox/default/letters.ready", "")
	w.write("inbox/default/photos.zip.done", "by the scanner")
	w.wantScan([]string{"letters", "photos.zip"}, nil, nil)
	time.Sleep(20 * time.Millisecond) // the clock of a file system ticks slowly
	w.write("inbox/default/letters/late.txt", "x")
	w.wantScan([]string{"photos.zip"}, []string{"letters"}, nil)
	w.write("inbox/default/letters.ready", "again")
	d := w.settled("letters")
	taken, err := w.Take(context.Background(), d, Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	taken = w.promoted(taken)
	if !content.Exists(d.Marker) {
		t.Error("the marker went before the item was committed")
	}
	if err := w.Done(taken); err != nil {
		t.Fatal(err)
	}
	if content.Exists(d.Marker) {
		t.Error("the marker of a taken drop stayed")
	}
	w.wantScan([]string{"photos.zip"}, nil, nil)
}

// A marker that was set anew while its drop was taken is the next drop's.
func TestMarkerOfTheNextDropStays(t *testing.T) {
	w := newBench(t)
	w.drop("letters")
	w.write("inbox/default/letters.ready", "")
	taken, err := w.Take(context.Background(), w.settled("letters"), Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	// A crash: the next engine knows the marker from the journal.
	next := w.next()
	found := next.pending()
	if len(found) != 1 || found[0].marker != taken.marker || taken.marker == "" {
		t.Fatalf("pending %+v", found)
	}
	time.Sleep(20 * time.Millisecond)
	w.drop("letters")
	w.write("inbox/default/letters.ready", "set anew")
	if err := next.Done(next.promoted(found[0])); err != nil {
		t.Fatal(err)
	}
	if d := w.settled("letters"); d.Marker == "" {
		t.Error("the marker of the next drop is gone")
	}
	d := w.settled("letters")
	if _, err := w.Reject(context.Background(), d, "trial", "for the test"); err != nil {
		t.Fatal(err)
	}
	if content.Exists(d.Marker) {
		t.Error("the marker of a rejected drop stayed")
	}
}

func TestMarkerThatMarksNothing(t *testing.T) {
	w := newBench(t)
	w.write("inbox/default/letters.ready", "")
	w.write("inbox/default/minutes.done", "a document of that name")
	w.later(time.Hour)
	w.wantScan([]string{"minutes.done"}, []string{"letters.ready"}, nil)
	if r := w.reason("letters.ready"); !strings.Contains(r, "letters, which is not here") {
		t.Error(r)
	}
}

// Where markers are asked for, waiting alone settles nothing.
func TestDropsThatNeedMarkers(t *testing.T) {
	w := newBench(t)
	w.set(Settling{Quiet: 2 * time.Second, Complete: ByMarker, Markers: []string{".ok"}})
	w.drop("letters")
	w.write("inbox/default/early.ok", "x")
	w.later(time.Hour)
	w.wantScan(nil, []string{"early.ok", "letters"}, nil)
	if r := w.reason("letters"); !strings.Contains(r, "letters.ok") {
		t.Error(r)
	}
	w.write("inbox/default/letters.ok", "")
	w.write("inbox/default/letters.ready", "an ordinary file here")
	w.wantScan([]string{"letters"}, []string{"early.ok", "letters.ready"}, nil)
}

func sumLine(path, content string) string {
	return fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(content)), path)
}

// A list in a folder keeps it waiting until all is there; the digests are compared
// once it is taken.
func TestLists(t *testing.T) {
	w := newBench(t)
	w.set(Settling{Quiet: 2 * time.Second, Complete: ByList})
	w.drop("letters")
	w.later(time.Hour)
	if r := w.reason("letters"); !strings.Contains(r, "manifest.txt") {
		t.Error(r)
	}
	w.write("inbox/default/letters/files.sha256", "# by the scanner\r\n\n"+sumLine("a.txt", "a of letters")+
		sumLine("*sub/b.txt", "b of letters")+sumLine("./sub/100%25.txt", "odd")+"late.tif\n")
	if r := w.reason("letters"); !strings.Contains(r, "waits for 2 of the 4 files that files.sha256 lists, first sub/100%2525.txt") {
		t.Error(r)
	}
	w.write("inbox/default/letters/sub/100%.txt", "odd")
	w.write("inbox/default/letters/late.tif", "no digest")
	taken, err := w.Take(context.Background(), w.settled("letters"), Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.CheckLists(context.Background(), taken); err != nil {
		t.Error(err)
	}
	for content, want := range map[string]string{
		"another a":  "a.txt: its SHA-256 is ",
		"a of other": "",
	} {
		w.drop("other")
		w.write("inbox/default/other/a.txt", content)
		w.write("inbox/default/other/manifest.txt", sumLine("a.txt", "a of other"))
		taken, err := w.Take(context.Background(), w.settled("other"), Ticket{})
		if err != nil {
			t.Fatal(err)
		}
		err = w.CheckLists(context.Background(), taken)
		var bad *BadError
		if errors.As(err, &bad) != (want != "") || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: CheckLists = %v, want %q", content, err, want)
		}
	}
}

func TestHostileLists(t *testing.T) {
	for name, c := range map[string]struct {
		make func(w *bench, path string) error
		want string
	}{
		"outside":    {func(_ *bench, p string) error { return os.WriteFile(p, []byte("../../../etc/passwd\n"), 0o644) }, "line 1: names no file in the folder"},
		"absolute":   {func(_ *bench, p string) error { return os.WriteFile(p, []byte("a.txt\n/etc/passwd\n"), 0o644) }, "line 2"},
		"a folder":   {func(_ *bench, p string) error { return os.WriteFile(p, []byte("sub\n"), 0o644) }, "sub: is listed as a file"},
		"missing":    {func(_ *bench, p string) error { return os.WriteFile(p, []byte("gone\n"), 0o644) }, "is not there"},
		"long line":  {func(_ *bench, p string) error { return os.WriteFile(p, []byte(strings.Repeat("x", 10_000)), 0o644) }, "line of more than"},
		"huge":       {func(_ *bench, p string) error { return errors.Join(os.WriteFile(p, nil, 0o644), os.Truncate(p, 1<<40)) }, "bytes; the limit is"},
		"not a text": {func(_ *bench, p string) error { return os.WriteFile(p, []byte("a\x00b\n"), 0o644) }, "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBench(t)
			w.set(Settling{Quiet: 2 * time.Second, Lists: []string{"list"}})
			got := w.take("letters")
			if err := c.make(w, got.Path+"/list"); err != nil {
				t.Fatal(err)
			}
			var bad *BadError
			if err := w.CheckLists(context.Background(), got); !errors.As(err, &bad) || bad.Rule != RuleList || !strings.Contains(err.Error(), c.want) {
				t.Errorf("CheckLists = %v, want %q", err, c.want)
			}
		})
	}
}

// What is on its way for too long is said to be late, by any process.
func TestGrowingTooLong(t *testing.T) {
	w := newBench(t)
	w.drop("film")
	w.write("inbox/default/film/scene.mov.part", "x")
	w.later(30 * time.Minute)
	w.wantScan(nil, []string{"film"}, nil)
	if r := w.reason("film"); strings.Contains(r, "on its way") {
		t.Error(r)
	}
	w.later(31 * time.Minute)
	next := w.next()
	next.later(61 * time.Minute)
	for _, b := range []*bench{w, next} {
		_, waiting, _ := b.scan()
		if len(waiting) != 1 || !waiting[0].Late || !strings.Contains(waiting[0].Reason, "holds an unfinished file: scene.mov.part; on its way since ") {
			t.Errorf("waiting %+v", waiting)
		}
	}
}

// Each collection may have its own rules.
func TestSettlingByCollection(t *testing.T) {
	w := newBench(t)
	opt := w.opt
	opt.Of = map[layout.Name]Settling{"slow": {Quiet: time.Hour, Ignore: []string{"*.uploading"}}}
	b, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	w.Box = b
	w.write("inbox/default/a.uploading", "x")
	w.write("inbox/slow/b.uploading", "x")
	w.write("inbox/slow/c.part", "x")
	w.write("inbox/slow/d", "x")
	w.later(time.Minute)
	w.wantScan([]string{"a.uploading"}, []string{"b.uploading", "c.part", "d"}, nil)
	w.later(time.Hour)
	w.wantScan([]string{"a.uploading", "c.part", "d"}, []string{"b.uploading"}, nil)
	opt.Of = map[layout.Name]Settling{"slow": {Markers: []string{"/x"}}}
	if _, err := New(opt); err == nil || !strings.Contains(err.Error(), "slow") {
		t.Errorf("a marker that is no suffix: %v", err)
	}
}
