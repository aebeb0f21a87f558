package inbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
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
// collection made while running.
func TestRunByEvents(t *testing.T) {
	w := newBench(t)
	w.opt.Watch = true
	w.opt.Quiet = 20 * time.Millisecond
	w.opt.Rescan = time.Hour
	ctx, cancel := context.WithCancel(context.Background())
	woken := make(chan struct{}, 1)
	done := make(chan error)
	go func() {
		done <- w.Run(ctx, func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
	}()
	wait := func(what string) {
		select {
		case <-woken:
		case <-time.After(10 * time.Second):
			t.Fatalf("not woken: %s", what)
		}
	}
	wait("at the start")
	w.drop("letters")
	wait("a drop")
	w.mkdir("inbox/later...")
	wait("a new collection")
	w.write("inbox/later.../x", "x")
	wait("a drop in the new collection")
	outside := w.write("outside/film.mp4", "x")
	w.mustMove(outside, w.path("inbox/default/film.mp4"))
	wait("a drop renamed in")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What was renamed into its place is settled at once, whole folders too, unless it
// has changed since.
func TestRenamedInIsSettled(t *testing.T) {
	w := newBench(t)
	w.opt.Watch, w.opt.Quiet, w.opt.Rescan = true, time.Hour, time.Hour
	ctx, cancel := context.WithCancel(context.Background())
	woken := make(chan struct{}, 1)
	done := make(chan error)
	go func() {
		done <- w.Run(ctx, func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
	}()
	<-woken
	w.drop("written in place")
	w.write("outside/box/a", "x")
	w.write("outside/box/deep/b", "x")
	w.mustMove(w.path("outside/box"), w.path("inbox/default/box"))
	settled := func(want ...string) {
		t.Helper()
		var names []string
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			ds, _, _, err := w.Scan(ctx)
			if err != nil {
				t.Fatal(err)
			}
			names = nil
			for _, d := range ds {
				names = append(names, d.Name)
			}
			if slices.Equal(names, want) {
				return
			}
		}
		t.Fatalf("settled %q, want %q", names, want)
	}
	select {
	case <-woken:
	case <-time.After(10 * time.Second):
		t.Fatal("not woken by a rename")
	}
	settled("box")
	w.write("inbox/default/box/deep/c", "more")
	settled()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The whole way with and without events: whatever is dropped gets taken.
func TestDropsAreTakenWhileRunning(t *testing.T) {
	for _, watch := range []bool{true, false} {
		t.Run(fmt.Sprintf("watch=%v", watch), func(t *testing.T) {
			const drops = 100
			w := newBench(t)
			w.opt.Watch, w.opt.Quiet, w.opt.Rescan = watch, 10*time.Millisecond, 50*time.Millisecond
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			wake := make(chan struct{}, 1)
			done := make(chan error)
			go func() {
				done <- w.Run(ctx, func() {
					select {
					case wake <- struct{}{}:
					default:
					}
				})
			}()
			var dropped atomic.Bool
			go func() {
				for i := range drops {
					w.drop(fmt.Sprintf("drop-%02d", i))
				}
				dropped.Store(true)
			}()
			taken := 0
			for taken < drops {
				select {
				case <-wake:
				case <-ctx.Done():
					t.Fatalf("%d taken of %d (all dropped: %v)", taken, drops, dropped.Load())
				}
				ds, _, _, err := w.Scan(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range ds {
					if d.Files < 2 {
						continue // its second file comes after more than Quiet: a slow machine
					}
					if _, err := w.Take(ctx, d, Ticket{}); err == nil {
						taken++
					}
				}
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
