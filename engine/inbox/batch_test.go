package inbox

import (
	"context"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
)

func (w *bench) batches() map[layout.Name]BatchFolder {
	w.t.Helper()
	f, err := w.Scan(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	found := map[layout.Name]BatchFolder{}
	for _, b := range f.Batches {
		found[b.Batch] = b
	}
	return found
}

// The drops in a folder are one batch; its marker marks them all, and ends it once
// nothing is left.
func TestBatchFolder(t *testing.T) {
	w := newBench(t)
	w.set(Settling{Quiet: 2 * time.Second, Batches: true, Complete: ByMarker})
	w.drop("june/letters")
	w.write("inbox/default/june/map.tif", "x")
	w.write("inbox/default/june/.DS_Store", "x")
	w.write("inbox/default/loose.txt", "x")
	w.write("inbox/default/no name!/x", "x")
	w.later(time.Hour)
	w.wantScan(nil, []string{"letters", "map.tif", ".DS_Store", "loose.txt", "no name!"}, nil)
	if r := w.reason("map.tif"); !strings.Contains(r, "map.tif.ready or map.tif.done, or that of batch june") {
		t.Error(r)
	}
	w.write("inbox/default/june.done", "")
	w.wantScan([]string{"letters", "map.tif"}, []string{".DS_Store", "loose.txt", "no name!"}, nil)
	if b := w.batches()["june"]; b.Whole || b.Left != 2 {
		t.Errorf("%+v", b)
	}
	for _, name := range []string{"letters", "map.tif"} {
		d := w.settled(name)
		if d.Batch != "june" {
			t.Errorf("%s is of batch %q", name, d.Batch)
		}
		got, err := w.Take(context.Background(), d, Ticket{Batch: string(d.Batch)})
		if err != nil {
			t.Fatal(err)
		}
		if name == "letters" { // put back where it was, and taken again
			if err := w.Undo(got); err != nil {
				t.Fatal(err)
			}
			if got, err = w.Take(context.Background(), w.settled(name), Ticket{Batch: "june"}); err != nil {
				t.Fatal(err)
			}
		}
		if taken, err := w.HasTaken("june"); err != nil || !taken {
			t.Errorf("HasTaken = %v, %v", taken, err)
		}
		if err := w.Done(w.promoted(got)); err != nil {
			t.Fatal(err)
		}
	}
	if taken, err := w.HasTaken("june"); err != nil || taken {
		t.Errorf("HasTaken = %v, %v", taken, err)
	}
	b := w.batches()["june"]
	if !b.Whole || b.Left != 0 {
		t.Fatalf("%+v", b)
	}
	if err := w.EndBatch(b); err != nil {
		t.Fatal(err)
	}
	if content.Exists(w.path("inbox/default/june.done")) || !content.Exists(w.path("inbox/default/june/.DS_Store")) {
		t.Error("the marker must go, and what a folder holds stay")
	}
}

// A quiet time ends a batch as well; what is unfinished in the folder does not let it.
func TestBatchEndsByQuiet(t *testing.T) {
	w := newBench(t)
	w.set(Settling{Batches: true, BatchQuiet: time.Hour})
	w.mkdir("inbox/default/june")
	w.write("inbox/default/july/a.part", "x")
	w.later(30 * time.Minute)
	if b := w.batches()["june"]; b.Whole || b.Left != 0 {
		t.Errorf("%+v", b)
	}
	if r := w.reason("june"); !strings.Contains(r, "june.ready or june.done beside it, or when nothing has come for 1h0m0s") {
		t.Error(r)
	}
	w.later(31 * time.Minute)
	bs := w.batches()
	if !bs["june"].Whole || bs["july"].Whole || bs["july"].Left != 1 {
		t.Errorf("%+v", bs)
	}
	if err := w.EndBatch(bs["june"]); err != nil || content.Exists(w.path("inbox/default/june")) {
		t.Errorf("the folder is there still, %v", err)
	}
}

// Into a batch that is closed nothing is taken.
func TestClosedBatchTakesNothing(t *testing.T) {
	w := newBench(t)
	w.opt.Closed = func(n layout.Name) string {
		if n == "june" {
			return "batch june was closed by Ada"
		}
		return ""
	}
	w.set(Settling{Quiet: 2 * time.Second, Batches: true})
	w.drop("june/letters")
	w.drop("july/letters2")
	w.later(time.Hour)
	w.wantScan([]string{"letters2"}, []string{"letters"}, nil)
	if r := w.reason("letters"); r != "batch june was closed by Ada; give its folder another name" {
		t.Error(r)
	}
}

// What is in the intake and is no drop that was taken keeps no batch open: a journal
// that another engine is just writing, what a person put there.
func TestHasTakenPassesOverWhatIsNone(t *testing.T) {
	w := newBench(t)
	w.write("intake/.5c1e9a70.3fa9c0d2e1b7a45.tmp/drop.json", "")
	w.write("intake/notes.txt", "x")
	if taken, err := w.HasTaken("june"); err != nil || taken {
		t.Errorf("HasTaken = %v, %v", taken, err)
	}
}
