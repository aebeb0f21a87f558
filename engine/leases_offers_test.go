package engine_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// standing looks at how much is in the lane, and at its epoch.
func (l *lane) standing() (offers int, epoch string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.offers), l.epoch
}

func (w *lessees) await(what string, is func() bool) {
	w.t.Helper()
	for begun := time.Now(); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			offers, epoch := w.lane.standing()
			w.t.Fatalf("%s did not come; %d on offer, epoch %s", what, offers, epoch)
		}
	}
}

// At most twice the free slots is on offer, and at least 16. A stream that delivers nothing is made anew, with all of
// it, and work goes on.
func TestOffersAreBoundedAndMadeAnew(t *testing.T) {
	w := newLessees(t, 40)
	w.lane.begins = 200 * time.Millisecond // the steps are offered again meanwhile
	w.begin()
	small, large := &hand{name: "small", id: "0000abc0"}, &hand{name: "large", id: "0000abc1", slots: 12}
	offered := func(n int) func() bool {
		return func() bool { got, _ := w.lane.standing(); return got == n }
	}
	w.hello(small) // 4 slots
	w.await("16 on offer", offered(16))
	w.hello(large)
	w.await("32 on offer", offered(32))
	time.Sleep(300 * time.Millisecond)
	if n, _ := w.lane.standing(); n != 32 {
		t.Errorf("%d on offer for 16 free slots, want 32", n)
	}
	w.lane.mu.Lock()
	before, one := w.lane.epoch, bytes.Clone(w.lane.offers[0])
	w.lane.stuck = true
	w.lane.mu.Unlock()
	w.offset.Add(int64(6 * time.Second))
	w.await("another epoch", func() bool {
		w.beat(small)
		w.beat(large)
		_, epoch := w.lane.standing()
		return epoch != before
	})
	w.lane.mu.Lock()
	w.lane.stuck = false
	w.lane.mu.Unlock()
	w.await("32 on offer again", func() bool {
		w.beat(small)
		w.beat(large)
		return offered(32)()
	})
	w.lane.mu.Lock()
	w.lane.offers = append(w.lane.offers, one)
	w.lane.mu.Unlock()
	if w.claim(small, 32, false); len(small.holds) != 0 {
		t.Error("an offer of the stream before was granted")
	}
	w.await("a grant", func() bool { w.claim(small, 0, false); return len(small.holds) == 1 })
	w.end()
}

// A step whose placement asks for a version of its program goes to workers that have it, and its attempt names it.
func TestWhichVersionOfARobot(t *testing.T) {
	w := newLessees(t, 1)
	file := filepath.Join(w.root, "bagpipe.yaml")
	settings, err := os.ReadFile(file)
	w.must(err)
	w.must(os.WriteFile(file, bytes.Replace(settings, []byte("{only: true}"), []byte(`{only: true, version: "4.2"}`), 1), 0o644))
	w.begin()
	older, newer := &hand{name: "older", id: "0000abc0", version: "4.1"}, &hand{name: "newer", id: "0000abc1", version: "4.2"}
	w.hello(older)
	w.hello(newer)
	w.await("an offer", func() bool { n, _ := w.lane.standing(); return n == 1 })
	w.hello(older) // the engine knows by now what is asked for
	w.hello(newer)
	if w.claim(older, 0, true); len(older.holds) != 0 || len(older.classes) != 0 {
		t.Errorf("the older version is granted %v, and pulls from %v", older.holds, older.classes)
	}
	w.await("a grant", func() bool { w.claim(newer, 0, false); return len(newer.holds) == 1 })
	if len(newer.classes) != 1 {
		t.Errorf("the newer version pulls from %v", newer.classes)
	}
	w.finish(newer.holds[0])
	w.await("the end", func() bool { return w.completed() == 1 })
	if record := git(t, w.root, "grep", "-h", `"version": "4.2"`, "main", "--", "items"); strings.Count(record, "4.2") != 1 {
		t.Errorf("the version in the records: %q", record)
	}
	w.end()
}

// Where nobody is left who could do them, steps are on offer no longer: those that may be done here are, and those that wait for so
// long are not available.
func TestOffersAreTakenBackWhereNobodyIsLeft(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "far-robot"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for placement, want := range map[string]string{"{}": "derive: completed", "{only: true, wait: 2s}": "no worker that could do far-robot came within 2s"} {
		t.Run(want, func(t *testing.T) {
			w := newLessees(t, 3)
			file := filepath.Join(w.root, "bagpipe.yaml")
			data, err := os.ReadFile(file)
			w.must(err)
			settings := strings.NewReplacer("lease: 1s", "lease: 5s", "{only: true}", placement).Replace(string(data)) // it is heard until the steps are on offer
			w.must(os.WriteFile(file, []byte(settings), 0o644))
			w.early = []*hand{{name: "w", id: "0000abc0"}}
			w.begin() // the worker says nothing more, and pulls nothing
			w.await("three on offer", func() bool { n, _ := w.lane.standing(); return n >= 3 })
			w.await("three ends", func() bool { return strings.Count(git(t, w.root, "log", "--format=%B"), want) >= 3 })
			w.end()
		})
	}
}
