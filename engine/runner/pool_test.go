package runner

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAtMostNRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(2, time.Now)
		var running, most, done atomic.Int64
		for range 20 {
			p.Go(t.Context(), Work{
				Run: func(context.Context, Aside) {
					if n := running.Add(1); n > most.Load() {
						most.Store(n)
					}
					time.Sleep(time.Second)
					running.Add(-1)
				},
				Finish: func() { done.Add(1) },
			})
		}
		p.Wait()
		if most.Load() != 2 || done.Load() != 20 || p.Busy() != 0 {
			t.Errorf("most %d, done %d, busy %d", most.Load(), done.Load(), p.Busy())
		}
	})
}

func TestTimeoutEndsTheContextWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, time.Now)
		var cause error
		p.Go(t.Context(), Work{
			Timeout: time.Minute,
			Run:     func(ctx context.Context, _ Aside) { <-ctx.Done(); cause = context.Cause(ctx) },
			Finish:  func() {},
		})
		p.Wait()
		var late *TimeoutError
		if !errors.As(cause, &late) || late.After != time.Minute {
			t.Errorf("cause %v", cause)
		}
	})
}

// TestDrainFinishesWhatRunsAndStartsNothing also holds that what was claimed and
// not started is finished all the same, so that its claim is given back.
func TestDrainFinishesWhatRunsAndStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, time.Now)
		var ran, finished atomic.Int64
		for range 2 {
			p.Go(t.Context(), Work{
				Run:    func(ctx context.Context, _ Aside) { ran.Add(1); time.Sleep(time.Hour) },
				Finish: func() { finished.Add(1) },
			})
		}
		synctest.Wait()
		p.Drain()
		p.Drain()
		p.Wait()
		if ran.Load() != 1 || finished.Load() != 2 {
			t.Errorf("%d ran, %d finished", ran.Load(), finished.Load())
		}
	})
}

func TestTheOwnersContextEndsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, time.Now)
		var cause error
		ctx, interrupt := context.WithCancelCause(t.Context())
		p.Go(ctx, Work{Run: func(ctx context.Context, _ Aside) { <-ctx.Done(); cause = context.Cause(ctx) }, Finish: func() {}})
		synctest.Wait()
		interrupt(ErrInterrupted)
		p.Wait()
		if !errors.Is(cause, ErrInterrupted) {
			t.Errorf("cause %v", cause)
		}
	})
}

func TestAClaimThatFailsGivesItsRoomBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, time.Now)
		for range 10 {
			p.Go(t.Context(), Work{
				Step:   "w/s",
				Claim:  func() bool { return false },
				Run:    func(context.Context, Aside) { t.Error("ran without its claim") },
				Finish: func() { t.Error("finished without its claim") },
			})
		}
		p.Wait()
		if !p.May("w/s", 0, 0) {
			t.Error("the room was not given back")
		}
	})
}

// TestInstancesBoundAStep: of one step as many run at once as it has instances,
// and as many more may be claimed as are prefetched; other steps are not kept waiting by it.
func TestInstancesBoundAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(3, time.Now)
		var running, most, others atomic.Int64
		add := func() {
			p.Go(t.Context(), Work{Step: "w/slow", Instances: 1, Run: func(context.Context, Aside) {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Second)
				running.Add(-1)
			}, Finish: func() {}})
		}
		add()
		synctest.Wait()
		if p.May("w/slow", 1, 0) || !p.May("w/slow", 1, 1) {
			t.Error("ahead of a long step others are claimed without prefetch, or not with it")
		}
		add()
		synctest.Wait()
		if p.May("w/slow", 1, 1) {
			t.Error("two may be claimed ahead")
		}
		for range 2 {
			p.Go(t.Context(), Work{Step: "w/fast", Run: func(context.Context, Aside) { others.Add(1) }, Finish: func() {}})
		}
		synctest.Wait()
		if others.Load() != 2 {
			t.Errorf("%d of another step ran beside it", others.Load())
		}
		p.Wait()
		if most.Load() != 1 {
			t.Errorf("%d ran at once", most.Load())
		}
	})
}

// TestShortStepsAreClaimedFurtherAhead: a worker does not wait for claims that take
// longer than its step, and one whose step takes somewhat longer has one ahead. Where it
// takes much longer, only a free worker claims.
func TestShortStepsAreClaimedFurtherAhead(t *testing.T) {
	for _, c := range []struct {
		claim, run time.Duration
		want       int
	}{{time.Millisecond, 5 * time.Millisecond, 1}, {time.Millisecond, time.Second, 1}, {10 * time.Millisecond, 4 * time.Millisecond, 6}, {time.Second, 0, mostAhead}} {
		synctest.Test(t, func(t *testing.T) {
			p := New(1, time.Now)
			w := Work{Step: "w/s",
				Claim:  func() bool { time.Sleep(c.claim); return true },
				Run:    func(context.Context, Aside) { time.Sleep(c.run) },
				Finish: func() {}}
			for range 20 { // it learns
				p.Go(t.Context(), w)
				p.Wait()
			}
			n := 0
			for ; p.May("w/s", 0, 0); n++ {
				p.Go(t.Context(), w)
			}
			if n != c.want {
				t.Errorf("claims of %s and runs of %s: %d ahead, want %d", c.claim, c.run, n, c.want)
			}
			p.Wait()
		})
	}
}

// TestAnUnknownStepIsClaimedOneAhead: before a step has run, nobody knows that it
// is short.
func TestAnUnknownStepIsClaimedOneAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, time.Now)
		w := Work{Step: "w/s",
			Claim:  func() bool { time.Sleep(time.Minute); return true },
			Run:    func(context.Context, Aside) { time.Sleep(time.Hour) },
			Finish: func() {}}
		for range 2 {
			p.Go(t.Context(), w)
			time.Sleep(2 * time.Minute)
		}
		if p.May("w/s", 0, 0) {
			t.Error("two may be claimed ahead")
		}
		p.Wait()
	})
}

// TestStocked: what waits for a place of its own step is no stock for the other slots.
func TestStocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(2, time.Now)
		end := make(chan struct{})
		start := func(step string, instances, n int) {
			for range n {
				p.Go(t.Context(), Work{Step: step, Instances: instances, Run: func(context.Context, Aside) { <-end }, Finish: func() {}})
			}
			synctest.Wait()
		}
		for _, more := range []struct {
			step         string
			instances, n int
			want         bool
		}{{"w/one", 1, 5, false}, {"w/two", 0, 1, false}, {"w/two", 0, 1, true}} {
			if start(more.step, more.instances, more.n); p.Stocked() != more.want {
				t.Errorf("after %d more of %s: stocked %v", more.n, more.step, p.Stocked())
			}
		}
		close(end)
		p.Wait()
		if p.Stocked() {
			t.Error("stocked when all is done")
		}
	})
}

func TestBackoff(t *testing.T) {
	b := Backoff{First: time.Second, Most: 10 * time.Second}
	for n, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 5: 10 * time.Second, 500: 10 * time.Second} {
		if lo, hi := b.Wait(n, 0), b.Wait(n, 1); hi != want || lo != want/2 {
			t.Errorf("after %d failures: %v to %v, want %v to %v", n, lo, hi, want/2, want)
		}
	}
}

// A piece of work that is cancelled while it waits, or waits for its place, ends without one: all places may be
// of those that wait for it.
func TestACancelledOneNeedsNoPlaceToEnd(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := New(1, time.Now)
			ctx, cancel := context.WithCancelCause(t.Context())
			there, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			p.Go(t.Context(), Work{Step: "w/make", Instances: 1, Finish: func() {}, Run: func(_ context.Context, aside Aside) {
				ended <- aside(ctx, func() error {
					select {
					case <-there:
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				})
			}})
			synctest.Wait()
			for range 2 { // the second gets the place that the first leaves
				p.Go(t.Context(), Work{Step: "w/piece", Finish: func() {}, Run: func(context.Context, Aside) { <-goOn }})
			}
			synctest.Wait()
			if late {
				close(there)
				synctest.Wait()
			}
			cancel(ErrInterrupted)
			synctest.Wait()
			select {
			case err := <-ended:
				if !errors.Is(err, ErrInterrupted) {
					t.Errorf("late %v: it answers %v", late, err)
				}
			default:
				t.Errorf("late %v: it waits for a place", late)
			}
			close(goOn)
			p.Drain()
			p.Wait()
			if p.Busy() != 0 || len(p.slots) != 0 {
				t.Errorf("late %v: %d are at work, %d slots are taken", late, p.Busy(), len(p.slots))
			}
		})
	}
}

// TestOthersRunAsideOneThatWaits: a piece of work that waits for the disk keeps no place,
// and goes on only once it has one again.
func TestOthersRunAsideOneThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, time.Now)
		durable, other, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var onward atomic.Bool
		p.Go(t.Context(), Work{Step: "w/deposit", Instances: 1, Finish: func() {}, Run: func(ctx context.Context, aside Aside) {
			if err := aside(ctx, func() error { <-durable; return ErrInterrupted }); err != ErrInterrupted {
				t.Errorf("the wait answers %v", err)
			}
			onward.Store(true)
		}})
		synctest.Wait()
		p.Go(t.Context(), Work{Step: "w/deposit", Instances: 1, Finish: func() {}, Run: func(context.Context, Aside) { close(other); <-goOn }})
		<-other
		close(durable)
		synctest.Wait()
		if onward.Load() {
			t.Error("two run in one place")
		}
		close(goOn)
		p.Drain()
		p.Wait()
		if !onward.Load() {
			t.Error("the one that waited did not go on")
		}
	})
}

// TestInstancesChangeWhileTheyRun: more instances begin to run at once, fewer let what
// runs finish first.
func TestInstancesChangeWhileTheyRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(4, time.Now)
		var running atomic.Int64
		add := func(instances int) {
			p.Go(t.Context(), Work{Step: "w/s", Instances: instances, Run: func(context.Context, Aside) {
				running.Add(1)
				time.Sleep(time.Second)
				running.Add(-1)
			}, Finish: func() {}})
		}
		for range 6 {
			add(1)
		}
		for _, c := range []struct{ instances, want int }{{1, 1}, {3, 3}, {2, 3}} {
			p.May("w/s", c.instances, 0)
			synctest.Wait()
			if n := running.Load(); n != int64(c.want) {
				t.Errorf("%d instances: %d run, want %d", c.instances, n, c.want)
			}
		}
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if n := running.Load(); n != 2 {
			t.Errorf("after a second with 2 instances %d run", n)
		}
		p.Wait()
	})
}

// TestWhatIsNotRunInTimeIsGivenBack: of what was claimed and does not get its turn Run is not
// called, and Finish is; nothing more is claimed ahead then.
func TestWhatIsNotRunInTimeIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, time.Now)
		end := make(chan struct{})
		p.Go(t.Context(), Work{Step: "w/long", Run: func(context.Context, Aside) { <-end }, Finish: func() {}})
		synctest.Wait()
		begin, given, ran := time.Now(), time.Duration(-1), 0
		next := Work{Step: "w/next", Within: time.Second, Run: func(context.Context, Aside) { ran++ }, Finish: func() { given = time.Since(begin) }}
		p.Go(t.Context(), next)
		time.Sleep(time.Minute)
		synctest.Wait()
		if given != time.Second || ran != 0 {
			t.Errorf("given back after %s, run %d times", given, ran)
		}
		if p.May("w/next", 0, 0) || !p.May("w/next", 0, 1) {
			t.Error("without a free slot something is claimed without prefetch, or nothing with it")
		}
		close(end)
		synctest.Wait()
		if !p.May("w/next", 0, 0) {
			t.Error("nothing is claimed though a slot is free")
		}
		p.Go(t.Context(), next)
		p.Wait()
		if ran != 1 || p.Busy() != 0 {
			t.Errorf("run %d times, busy %d", ran, p.Busy())
		}
	})
}

// TestLongStepsKeepOthersFromBeingClaimed: while long steps have all slots, no other step's
// work is claimed, and while short ones have them, it is.
func TestLongStepsKeepOthersFromBeingClaimed(t *testing.T) {
	for run, want := range map[time.Duration]bool{10 * time.Millisecond: true, time.Minute: false} {
		synctest.Test(t, func(t *testing.T) {
			p := New(2, time.Now)
			w := Work{Step: "w/s", Claim: func() bool { return true }, Run: func(context.Context, Aside) { time.Sleep(run) }, Finish: func() {}}
			for round := range 3 {
				p.Go(t.Context(), w)
				p.Go(t.Context(), w)
				if synctest.Wait(); p.Busy() != 2 {
					t.Fatal(p.Busy())
				}
				if got := p.May("w/other", 0, 0); round > 0 && got != want {
					t.Errorf("with runs of %s: %v", run, got)
				}
				p.Wait()
			}
		})
	}
}

// What follows on a piece of work runs in its goroutine, one after the other, and counts as one
// that is busy; where there is no room it is not let in, and a place that was forgone is free.
func TestWhatFollowsOnAPieceOfWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, time.Now)
		var order []string
		var work func(step string, rest ...string) Work
		work = func(step string, rest ...string) Work {
			w := Work{Step: step, Run: func(context.Context, Aside) { time.Sleep(time.Millisecond) }, Claimed: 8 * time.Millisecond,
				Finish: func() { order = append(order, step) }}
			w.Next = func() *Work {
				if p.Busy() != 1 {
					t.Errorf("%d are busy", p.Busy())
				}
				if len(rest) == 0 || !p.Follow(rest[0], 0, 0) {
					return nil
				}
				next := work(rest[0], rest[1:]...)
				return &next
			}
			return w
		}
		p.Go(t.Context(), work("w/a", "w/b", "w/c"))
		p.Wait()
		if len(order) != 3 || order[2] != "w/c" || p.Busy() != 0 {
			t.Errorf("%v, %d busy", order, p.Busy())
		}
		for range 2 {
			if !p.Follow("w/new", 0, 0) {
				t.Fatal("the place that was forgone is not free")
			}
			if p.Follow("w/new", 0, 0) || p.MayFollow("w/new", 0, 0) {
				t.Error("of a step of which nothing is known more than run are let in")
			}
			p.Forgo("w/new")
		}
		p.Drain()
		if p.Follow("w/a", 0, 0) {
			t.Error("let in while it drains")
		}
	})
}
