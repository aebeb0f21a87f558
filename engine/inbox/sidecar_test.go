package inbox

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
)

// A side-car keeps its drop waiting while it grows, stays until the item is committed,
// also across a crash, and is then with the item. With a rejected drop it stays.
func TestSidecars(t *testing.T) {
	w := newBench(t)
	w.set(Settling{Quiet: 2 * time.Second, Sidecars: true})
	w.write("inbox/default/film.mp4", "x")
	w.write("inbox/default/metadata.csv", "drop,title\n")
	w.write("inbox/default/nobody.metadata.json", "{}")
	w.later(time.Hour)
	w.atOnce()
	car := w.write("inbox/default/film.mp4.metadata.json", "{}")
	now := w.opt.Now()
	if err := os.Chtimes(car, now, now); err != nil { // written just now, by the box's clock
		t.Fatal(err)
	}
	w.wantScan(nil, []string{"film.mp4", "nobody.metadata.json"}, nil)
	if r := w.reason("film.mp4"); !strings.Contains(r, "film.mp4.metadata.json is still growing") {
		t.Error(r)
	}
	if r := w.reason("nobody.metadata.json"); r != "is about nobody, which is not here" {
		t.Error(r)
	}
	w.later(time.Minute)
	taken, err := w.Take(context.Background(), w.settled("film.mp4"), Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	next := w.next()
	found := next.pending()
	if len(found) != 1 || len(found[0].Sidecars) != 1 || found[0].Sidecars[0] != car || found[0].Shared != taken.Shared || taken.Shared == "" {
		t.Fatalf("pending %+v", found)
	}
	home := next.promoted(found[0])
	if !content.Exists(car) {
		t.Error("the side-car went before the item was committed")
	}
	for range 2 {
		if err := next.Done(home); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(w.path(layout.ItemDir(taken.ID)), layout.SidecarsDir, "film.mp4.metadata.json")
	if content.Exists(car) || !content.Exists(kept) || !content.Exists(w.path("inbox/default/metadata.csv")) {
		t.Errorf("side-car at its origin: %v, with its item: %v", content.Exists(car), content.Exists(kept))
	}
	w.write("inbox/default/film.mp4", "y")
	w.write("inbox/default/film.mp4.metadata.json", "{}")
	w.later(time.Hour)
	if _, err := w.Reject(context.Background(), w.settled("film.mp4"), "trial", "for the test"); err != nil {
		t.Fatal(err)
	}
	if !content.Exists(car) {
		t.Error("the side-car of a rejected drop is gone")
	}
}

// What is left of a rejected drop, its side-car, keeps no batch open; that of a drop which
// is still to come does.
func TestSidecarOfARejectedDropKeepsNoBatchOpen(t *testing.T) {
	w := newBench(t)
	w.set(Settling{Quiet: 2 * time.Second, Sidecars: true, Batches: true})
	w.write("inbox/default/june/film.mp4", "x")
	w.write("inbox/default/june/film.mp4.metadata.json", "{")
	w.write("inbox/default/june.done", "")
	w.later(10 * time.Minute)
	if _, err := w.Reject(context.Background(), w.settled("film.mp4"), "trial", "for the test"); err != nil {
		t.Fatal(err)
	}
	left := func() BatchFolder {
		f, err := w.Scan(context.Background())
		if err != nil || len(f.Batches) != 1 {
			t.Fatalf("%v, %v", f.Batches, err)
		}
		return f.Batches[0]
	}
	if f := left(); f.Left != 0 || !f.Whole {
		t.Errorf("%+v", f)
	}
	if r := w.reason("film.mp4.metadata.json"); r != "is about film.mp4, which was rejected; it is read once that is put back" {
		t.Error(r)
	}
	w.write("inbox/default/june/sound.wav.metadata.json", "{}")
	if f := left(); f.Left != 1 || f.Whole {
		t.Errorf("%+v", f)
	}
}

// Where side-cars are not asked for, such files are drops like any other.
func TestNoSidecars(t *testing.T) {
	w := newBench(t)
	w.write("inbox/default/metadata.csv", "x")
	w.write("inbox/default/a.metadata.json", "x")
	w.write("inbox/default/a", "x")
	w.later(time.Hour)
	w.wantScan([]string{"a", "a.metadata.json", "metadata.csv"}, nil, nil)
}

// Other settings hold from the next scan on.
func TestResettle(t *testing.T) {
	w := newBench(t)
	w.write("inbox/default/a.part", "x")
	w.write("inbox/default/b", "x")
	w.later(time.Minute)
	w.wantScan([]string{"b"}, []string{"a.part"}, nil)
	if err := w.Resettle(Settling{Ignore: []string{}, Quiet: time.Hour}, nil); err != nil {
		t.Fatal(err)
	}
	w.wantScan(nil, []string{"a.part", "b"}, nil)
	if err := w.Resettle(Settling{Quiet: 2 * time.Second, Ignore: []string{"["}}, nil); err == nil {
		t.Error("a broken pattern was accepted")
	}
	w.later(time.Hour)
	w.wantScan([]string{"a.part", "b"}, nil, nil)
}

// A side-car that was put there anew since the drop was taken is that of the next drop
// of this name, whatever comes first, it or the drop.
func TestSidecarOfTheNextDrop(t *testing.T) {
	w := newBench(t)
	w.set(Settling{Quiet: 2 * time.Second, Sidecars: true})
	w.write("inbox/default/film.mp4", "x")
	car := w.write("inbox/default/film.mp4.metadata.json", `{"title": "first"}`)
	w.later(time.Hour)
	taken, err := w.Take(context.Background(), w.settled("film.mp4"), Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(car); err != nil {
		t.Fatal(err)
	}
	w.write("inbox/default/film.mp4.metadata.json", `{"title": "second"}`)
	next := w.next() // as after a crash
	if err := next.Done(next.promoted(next.pending()[0])); err != nil {
		t.Fatal(err)
	}
	if kept := filepath.Join(w.path(layout.ItemDir(taken.ID)), layout.SidecarsDir, "film.mp4.metadata.json"); content.Exists(kept) || !content.Exists(car) {
		t.Error("the first item took the side-car of the second drop")
	}
	w.write("inbox/default/film.mp4", "y")
	w.later(time.Hour)
	if d := w.settled("film.mp4"); len(d.Sidecars) != 1 {
		t.Errorf("the second drop has the side-cars %q", d.Sidecars)
	}
}
