package inbox

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/layout"
)

var versioned = layout.ItemIDOf(0x3fa9c0d2e1b7a4)

// replaceable is a bench with an item of all parts and a drop of the same name as the
// item's.
func replaceable(t *testing.T) (*bench, Taken) {
	w := newBench(t)
	home := layout.ItemDir(versioned) + "/"
	for path, text := range map[string]string{"source/letters/old.txt": "old", "content/old.txt": "old", "derived/bag/x": "bag",
		"sidecars/letters.csv": "table", "manifest.json": "m", "logs/a.log": "log"} {
		w.write(home+path, text)
	}
	return w, w.take("letters")
}

func oldRecords() map[string][]byte {
	return map[string][]byte{layout.ManifestJSON: []byte("m"), layout.InventoryJSON: []byte("i")}
}

func free() error { return nil }

func TestReplaceAndRestore(t *testing.T) {
	w, d := replaceable(t)
	home := layout.ItemDir(versioned)
	before := w.files(home)
	got, err := w.Replace(context.Background(), d, Next{Item: versioned, Version: 2}, oldRecords(), free)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Promoted || got.Item != versioned || got.Version != 2 || got.Path != w.path(home, "source", "letters") {
		t.Errorf("replaced: %+v", got)
	}
	after := w.files(home)
	for path, text := range map[string]string{"versions/1/source/letters/old.txt": "old", "versions/1/content/old.txt": "old",
		"versions/1/derived/bag/x": "bag", "versions/1/sidecars/letters.csv": "table", "versions/1/manifest.json": "m",
		"versions/1/inventory.json": "i", "source/letters/a.txt": "a of letters", "logs/a.log": "log"} {
		if after[path] != text {
			t.Errorf("%s is %q, want %q", path, after[path], text)
		}
	}
	if _, there := after["content/old.txt"]; there {
		t.Error("the old content is the new version's")
	}
	if err := w.Undo(got); err == nil {
		t.Error("a version was given back")
	}
	back, err := w.Restore(got)
	if err != nil || back.Promoted || back.Item != "" || back.Path != d.Path {
		t.Fatalf("restored: %+v, %v", back, err)
	}
	if now := w.files(home); !maps.Equal(now, before) {
		t.Errorf("the item is %v, was %v", now, before)
	}
	if got, err = w.Replace(context.Background(), back, Next{Item: versioned, Version: 2}, oldRecords(), free); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Done(got), w.Done(got)); err != nil {
		t.Fatal(err)
	}
	w.wantEmpty("intake")
}

// What keeps a version from being made leaves all as it was.
func TestReplaceRefused(t *testing.T) {
	w, d := replaceable(t)
	home := layout.ItemDir(versioned)
	before := w.files(home)
	busy := &WaitsError{"busy"}
	closed := false
	_, err := w.Replace(context.Background(), d, Next{Item: versioned, Version: 2}, oldRecords(), func() error {
		_, lerr := os.Lstat(w.path(layout.VersionDir(versioned, 1), layout.VersionJSON))
		closed = lerr == nil
		return busy
	})
	var waits *WaitsError
	if !errors.As(err, &waits) || !closed {
		t.Errorf("not free: %v; it was closed when that was asked: %v", err, closed)
	}
	if now := w.files(home); !maps.Equal(now, before) {
		t.Errorf("the item is %v, was %v", now, before)
	}
	other := w.take("other")
	if _, err = w.Replace(context.Background(), other, Next{Item: versioned, Version: 2}, oldRecords(), free); err != nil {
		t.Fatal(err)
	}
	before = w.files(home)
	if _, err = w.Replace(context.Background(), d, Next{Item: versioned, Version: 2}, oldRecords(), free); !errors.As(err, &waits) {
		t.Errorf("two drops were to be one version: %v", err)
	}
	// The admission of version 2 has not ended.
	if _, err = w.Replace(context.Background(), d, Next{Item: versioned, Version: 3}, oldRecords(), free); !errors.As(err, &waits) {
		t.Errorf("a version was made of one that is being taken in: %v", err)
	}
	if now := w.files(home); !maps.Equal(now, before) {
		t.Errorf("the item is %v, was %v", now, before)
	}
	if err := w.Undo(d); err != nil {
		t.Errorf("give the drop back: %v", err)
	}
}

// crashes are the states in which Replace, and then Restore, may be cut short, as
// steps one after the other.
func crashes(w *bench, d Taken) (steps []func() error) {
	d.Item, d.Version = versioned, 2
	home, kept, intake := w.path(layout.ItemDir(versioned)), w.versionDir(versioned, 1), w.intakeOf(d.ID)
	move := func(from, to string) func() error { return func() error { return os.Rename(from, to) } }
	steps = append(steps,
		func() error { return nil },
		func() error { return w.Intend(d, versioned, 2) },
		func() error { return os.MkdirAll(w.stagingDir(d), 0o755) },
		func() error { return os.WriteFile(filepath.Join(w.stagingDir(d), ".manifest.json12"), nil, 0o644) },
		func() error { return os.WriteFile(filepath.Join(w.stagingDir(d), "manifest.json"), []byte("m"), 0o644) },
		func() error { return w.closeVersion(d, oldRecords()) })
	for _, part := range movedParts() {
		steps = append(steps, move(filepath.Join(home, part), filepath.Join(kept, part)))
	}
	steps = append(steps, move(filepath.Join(intake, "source"), filepath.Join(home, "source")),
		move(filepath.Join(home, "source"), filepath.Join(intake, "source")))
	for _, part := range movedParts() {
		steps = append(steps, move(filepath.Join(kept, part), filepath.Join(home, part)))
	}
	return append(steps, move(kept, w.stagingDir(d)),
		func() error { return os.Remove(filepath.Join(w.stagingDir(d), "inventory.json")) },
		func() error { return os.Remove(filepath.Join(w.stagingDir(d), "manifest.json")) },
		func() error { return os.Remove(filepath.Join(w.stagingDir(d), "version.json")) },
		func() error { return os.Remove(w.stagingDir(d)) },
		func() error { return os.Remove(filepath.Dir(kept)) })
}

// Killed at any point, the next engine takes it back, and can go on.
func TestReplaceCrashes(t *testing.T) {
	probe, d := replaceable(t)
	n := len(crashes(probe, d))
	for last := range n {
		w, d := replaceable(t)
		home := layout.ItemDir(versioned)
		before := w.files(home)
		for i, step := range crashes(w, d)[:last+1] {
			if err := step(); err != nil {
				t.Fatalf("crash %d, step %d: %v", last, i, err)
			}
		}
		next := w.next()
		found := next.pending()
		if len(found) != 1 || found[0].ID != d.ID {
			t.Fatalf("crash %d: pending %+v", last, found)
		}
		bound, err := next.Bound()
		if err != nil || len(bound) != min(last, 1) {
			t.Errorf("crash %d: bound %+v, %v", last, bound, err)
		}
		back, err := next.Restore(found[0])
		if err != nil {
			t.Fatalf("crash %d: %v", last, err)
		}
		if _, err := next.Restore(found[0]); err != nil {
			t.Fatalf("crash %d: again: %v", last, err)
		}
		if now := w.files(home); !maps.Equal(now, before) {
			t.Errorf("crash %d: the item is %v, was %v", last, now, before)
		}
		if back.Promoted || back.Path != d.Path {
			t.Errorf("crash %d: %+v", last, back)
		}
		w.wantFiles("intake/"+string(d.ID)+"/source", dropFiles("letters"))
		got, err := next.Replace(context.Background(), back, Next{Item: versioned, Version: 2}, oldRecords(), free)
		if err == nil {
			err = next.Done(got)
		}
		if err != nil {
			t.Errorf("crash %d: go on: %v", last, err)
		}
		w.wantEmpty("intake")
	}
}

// A drop that is gone from the intake is not taken for the source of its item, which
// has the same name.
func TestBoundDropGone(t *testing.T) {
	w, d := replaceable(t)
	if err := w.Intend(d, versioned, 2); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(d.Path); err != nil {
		t.Fatal(err)
	}
	if found := w.next().pending(); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
	if text := w.files(layout.ItemDir(versioned))["source/letters/old.txt"]; text != "old" {
		t.Errorf("the item's source is %q", text)
	}
}
