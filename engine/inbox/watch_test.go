package inbox

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rjeczalik/notify"
	"golang.org/x/sys/unix"
)

// Without events: at once, then every Rescan, and when a waiting drop can have
// settled.
func TestRunByTimerAlone(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "inbox/default"), 0o755); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		b, err := New(Options{Root: root})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		var wakes []time.Duration
		done := make(chan error)
		go func() { done <- b.Run(ctx, func() { wakes = append(wakes, time.Since(begun)) }) }()
		at := func(d time.Duration) { time.Sleep(time.Until(begun.Add(d))); synctest.Wait() } // the bubble's clock
		at(25 * time.Second)
		b.announce([]Waiting{{Until: time.Now().Add(3 * time.Second)}, {Until: time.Now().Add(2 * time.Second)}, {}}, 0)
		at(28 * time.Second)
		b.announce(nil, 400*time.Millisecond) // a slow scan: not again before 20 s
		at(30 * time.Second)
		b.announce(nil, 400*time.Millisecond) // somebody else's scan puts nothing off
		at(55 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		want := []time.Duration{0, 10 * time.Second, 20 * time.Second, 27 * time.Second, 48 * time.Second}
		if fmt.Sprint(wakes) != fmt.Sprint(want) {
			t.Errorf("woken at %v, want %v", wakes, want)
		}
	})
}

// An event makes the scan due after Quiet rather than after Rescan, also in a
// collection made while running. Without events Rescan does.
func TestRunByEvents(t *testing.T) {
	w := newBench(t)
	w.common.Quiet = 20 * time.Millisecond
	w.opt.Rescan = time.Hour
	if !w.opt.Watch {
		w.opt.Rescan = 20 * time.Millisecond
	}
	r := w.running()
	r.wait("at the start")
	w.drop("letters")
	r.wait("a drop")
	w.mkdir("inbox/later...")
	r.wait("a new collection")
	w.write("inbox/later.../x", "x")
	r.wait("a drop in the new collection")
	outside := w.write("outside/film.mp4", "x")
	w.mustMove(outside, w.path("inbox/default/film.mp4"))
	r.wait("a drop renamed in")
	r.stop()
}

// What was renamed into its place is settled at once, whole folders and files, unless
// it has changed since; also where no event tells of it, if it is older than the scan
// before.
func TestRenamedInIsSettled(t *testing.T) {
	w := newBench(t)
	w.common.Quiet, w.opt.Rescan = 24*time.Hour, time.Hour
	w.write("outside/box/a", "x")
	w.write("outside/box/deep/b", "x")
	w.write("outside/film", "x")
	w.drop("written in place")
	w.later(time.Hour) // what is outside is old by now
	r := w.running()
	r.wait("at the start")
	w.wantScan(nil, []string{"written in place"}, nil)
	w.ahead.Store(0)
	w.mustMove(w.path("outside/box"), w.path("inbox/default/box"))
	w.mustMove(w.path("outside/film"), w.path("inbox/default/film"))
	if w.opt.Watch {
		r.wait("by a rename")
	}
	w.eventuallySettled("box", "film")
	w.write("inbox/default/box/deep/c", "more")
	w.eventuallySettled("film")
	r.stop()
}

// Past the system's limit of watches the inbox is polled, and it is said so, once.
func TestNoWatchesLeft(t *testing.T) {
	w := newBench(t)
	var said bytes.Buffer
	w.opt.Watch, w.opt.Rescan = true, 20*time.Millisecond
	w.opt.Log = slog.New(slog.NewTextHandler(&said, nil))
	w.Box.watch = func(string, chan<- notify.EventInfo, ...notify.Event) error { return unix.ENOSPC }
	r := w.running()
	for i := range 3 {
		r.wait(fmt.Sprintf("time %d", i))
		w.mkdir(fmt.Sprintf("inbox/more-%d", i))
	}
	r.stop()
	if got := said.String(); strings.Count(got, "the inbox is not watched but polled") != 1 || !strings.Contains(got, "no space left") {
		t.Errorf("said %q", got)
	}
}

// A copy is not taken for a rename, whatever times it is given.
func TestCopiedInIsNot(t *testing.T) {
	w := newBench(t)
	w.common.Quiet = 24 * time.Hour
	w.scan()
	old := time.Now().Add(-time.Hour)
	for _, p := range []string{w.write("inbox/default/copy/a", "x"), w.write("inbox/default/file", "x"), w.path("inbox/default/copy")} {
		if err := os.Chtimes(p, old, old); err != nil {
			t.Fatal(err)
		}
	}
	w.wantScan(nil, []string{"copy", "file"}, nil)
}

// The whole way: whatever is dropped gets taken.
func TestDropsAreTakenWhileRunning(t *testing.T) {
	const drops = 100
	w := newBench(t)
	w.common.Quiet, w.opt.Rescan = 10*time.Millisecond, 50*time.Millisecond
	r := w.running()
	var dropped atomic.Bool
	go func() {
		for i := range drops {
			w.drop(fmt.Sprintf("drop-%02d", i))
		}
		dropped.Store(true)
	}()
	for taken := 0; taken < drops; {
		r.wait(fmt.Sprintf("%d taken of %d (all dropped: %v)", taken, drops, dropped.Load()))
		ds, _, _ := w.scan()
		for _, d := range ds {
			if d.Files < 2 {
				continue // its second file comes after more than Quiet: a slow machine
			}
			if _, err := w.Take(t.Context(), d, Ticket{}); err == nil {
				taken++
			}
		}
	}
	r.stop()
}
