package schedule_test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"
	"bagpipe/engine/schedule"
	"bagpipe/engine/timetable"
	"bagpipe/steps"
)

// What people hand to a keeper that runs is done, each once, also where it is to end meanwhile; to one that
// does not run nothing is handed.
func TestHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &night{t: t, clock: &clock{}}
		root := filepath.Join(t.TempDir(), "ws")
		o := engine.Options{Now: n.clock.now, Random: rand.New(rand.NewSource(1)), Robots: steps.Builtins(), Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()},
			Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}}
		n.must(engine.Init(t.Context(), root, o))
		n.must(os.MkdirAll(filepath.Join(root, "schedules"), 0o777))
		const names = 3
		for i := range names {
			n.write(root, fmt.Sprint("s", i), line{cron: "0 0 1 1 *"}, "UTC", "skip")
		}
		var err error
		n.e, err = engine.Open(t.Context(), root, o)
		n.must(err)
		defer func() { n.must(n.e.Close()) }()
		var did atomic.Int64
		deed := func(context.Context, timetable.Do) (string, bool, error) {
			time.Sleep(3 * time.Second)
			did.Add(1)
			return "done", false, nil
		}
		k := schedule.New(n.e.Ledger, n.e.Settings, map[string]schedule.Deed{"start": deed}, func(*queue.Named) (int, error) { return 0, nil })
		by := n.e.Ledger.ByPerson()
		if err := k.Hand(t.Context(), by, "s0"); !fault.Is(err, fault.Busy) {
			t.Errorf("handed to nobody: %v", err)
		}
		ctx, end := context.WithCancel(t.Context())
		var running, handing sync.WaitGroup
		running.Go(func() { k.Run(ctx, t.Context(), func(string, bool) {}) })
		time.Sleep(time.Second)
		var handed atomic.Int64
		for i := range 12 {
			handing.Go(func() {
				for try := range 10 {
					err := k.Hand(t.Context(), by, fmt.Sprint("s", i%names))
					switch {
					case err == nil:
						handed.Add(1)
					case !fault.Is(err, fault.Refused) && !fault.Is(err, fault.Busy):
						t.Error(err)
					}
					time.Sleep(time.Duration(500+100*i+37*try) * time.Millisecond)
				}
			})
		}
		time.Sleep(8 * time.Second)
		end()
		running.Wait()
		if handed.Load() < names || handed.Load() != did.Load() {
			t.Errorf("%d were handed over, %d done", handed.Load(), did.Load())
		}
		handing.Wait()
		for i := range names {
			row, err := k.Row(fmt.Sprint("s", i))
			n.must(err)
			for _, f := range row.Firings {
				if f.Outcome != schedule.Completed {
					t.Errorf("%s, fired at %s: %q", row.Name, f.Due, f.Outcome)
				}
			}
		}
	})
}
