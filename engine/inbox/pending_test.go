package inbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

func TestPending(t *testing.T) {
	w := newBench(t)
	taken := w.take("taken")
	moved := w.promoted(w.take("promoted"))
	nothing := w.opened(Request{Drop: Drop{Collection: "default", Name: "lost", Path: w.path("inbox/default/lost")}})
	if nothing.Err != nil {
		t.Fatal(nothing.Err)
	}
	w.write("intake/."+string(w.opt.Engine)+".3fa9c0d2e1b7a45.tmp/drop.json", "{")
	w.mkdir("intake/." + string(w.opt.Engine) + ".3fa9c0d2e1b7a45.tmp/source")
	cut := w.mkdir("intake/" + string(newItem(t)) + "/source") // a Done cut short

	// An engine that lives keeps what it has.
	if found, err := w.next().Pending(context.Background(), func(layout.EngineID) bool { return true }); err != nil || len(found) != 0 {
		t.Fatalf("taken from the living: %+v, %v", found, err)
	}
	if _, err := os.Stat(w.intakeOf(nothing.Taken.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cut); !os.IsNotExist(err) {
		t.Errorf("an empty folder without a journal stayed: %v", err)
	}

	next := w.next()
	found := map[layout.ItemID]Taken{}
	for _, x := range next.pending() {
		found[x.ID] = x
	}
	if len(found) != 2 {
		t.Fatalf("found %+v", found)
	}
	if got := found[taken.ID]; !reflect.DeepEqual(got, taken) {
		t.Errorf("got %+v\nwant %+v", got, taken)
	}
	if got := found[moved.ID]; !reflect.DeepEqual(got, moved) {
		t.Errorf("got %+v\nwant %+v", got, moved)
	}
	entries, err := os.ReadDir(w.path("intake"))
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
	if again := next.pending(); len(again) != 0 {
		t.Errorf("recovered twice by one engine: %+v", again)
	}
	if again := next.next().pending(); len(again) != 2 { // adopted, then died as well
		t.Errorf("recovered %+v", again)
	}
}

// What a full disk keeps an engine from making its own is not handed to it, as another
// could have it too; it is there for whoever looks when there is room.
func TestAFullDiskAdoptsNothing(t *testing.T) {
	w := newBench(t)
	small := w.mkdir("intake")
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a second file system: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(small, unix.MNT_DETACH) })
	taken := w.take("taken")
	filler, err := os.Create(filepath.Join(small, ".filler"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	next := w.next()
	for range 2 {
		found, err := next.Pending(context.Background(), next.onlyMe)
		if len(found) != 0 || !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("Pending = %+v, %v, want nothing, and ENOSPC", found, err)
		}
	}
	if err := errors.Join(filler.Close(), os.Remove(filler.Name())); err != nil {
		t.Fatal(err)
	}
	if found := next.pending(); len(found) != 1 || !reflect.DeepEqual(found[0], taken) {
		t.Errorf("with room: %+v, want %+v", found, taken)
	}
}

func newItem(t *testing.T) layout.ItemID {
	t.Helper()
	id, err := layout.NewItemID(strings.NewReader("7 bytes of it"))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// What cannot be understood is named and left alone; the rest is recovered.
func TestPendingReportsWhatItDoesNotKnow(t *testing.T) {
	w := newBench(t)
	taken := w.take("fine")
	broken := w.take("broken")
	newer := w.take("newer")
	w.write("intake/"+string(broken.ID)+"/drop.json", "")
	if err := rewriteJournal(w.intakeOf(newer.ID), map[string]any{"schema": 2}); err != nil {
		t.Fatal(err)
	}
	w.write("intake/somebody's/file", "x")
	w.write("intake/"+string(newItem(t))+"/source/file", "no journal")
	before := w.files("intake")
	next := w.next()
	found, err := next.Pending(context.Background(), next.onlyMe)
	if len(found) != 1 || found[0].ID != taken.ID {
		t.Errorf("found %+v", found)
	}
	if err == nil {
		t.Fatal("nothing was reported")
	}
	for _, want := range []string{string(broken.ID), string(newer.ID), "schema 2", "somebody's", string(newItem(t))} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
	after := w.files("intake")
	delete(before, string(taken.ID)+"/drop.json") // now names the next engine
	delete(after, string(taken.ID)+"/drop.json")
	for p, c := range before {
		if after[p] != c {
			t.Errorf("%s was changed", p)
		}
	}
}

func TestAdoptingKeepsUnknownFields(t *testing.T) {
	w := newBench(t)
	got := w.take("letters")
	if err := rewriteJournal(w.intakeOf(got.ID), map[string]any{"future": 12345678901234567}); err != nil {
		t.Fatal(err)
	}
	next := w.next()
	next.pending()
	data, err := os.ReadFile(filepath.Join(w.intakeOf(got.ID), journalFile))
	if err != nil || !strings.Contains(string(data), `"future": 12345678901234567`) ||
		!strings.Contains(string(data), `"engine": "`+string(next.opt.Engine)+`"`) {
		t.Errorf("%s, %v", data, err)
	}
}
