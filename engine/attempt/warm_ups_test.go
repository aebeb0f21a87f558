package attempt

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// kiln is a robot that has to be warmed up, which takes until it is let.
type kiln struct {
	fails, tried, inside, most atomic.Int32
	let                        chan struct{}
}

func (k *kiln) Run(context.Context, *steps.Call) (steps.Result, error) { return steps.Result{}, nil }
func (k *kiln) WarmUp(context.Context, map[string]any) error {
	n := k.inside.Add(1)
	for most := k.most.Load(); n > most && !k.most.CompareAndSwap(most, n); most = k.most.Load() {
	}
	<-k.let
	k.inside.Add(-1)
	if k.tried.Add(1) <= k.fails.Load() {
		return errors.New("cold")
	}
	return nil
}

func TestABuiltInRobotIsWarmedUpOnceAndTriedAgain(t *testing.T) {
	k := &kiln{let: make(chan struct{})}
	k.fails.Store(2)
	woken, drained := make(chan struct{}, 10), make(chan struct{})
	now := time.Unix(0, 0)
	reasons := 0
	w := &WarmUps{rooms: rooms{robots: map[layout.Name]steps.Builtin{"kiln": {Robot: k}, "plain": {Robot: steps.Func(nil)}}},
		drained: drained, slots: make(chan struct{}, 1), now: func() time.Time { return now }, steps: map[string]*warmUp{},
		backoff: func(n int) time.Duration { return time.Duration(n) * time.Minute },
		ended:   func() { woken <- struct{}{} },
		note:    func(queue.StepID, error) {}, grave: func(string) { reasons++ }}
	id, step := queue.StepID{Workflow: "w", Step: "bake"}, &state.Step{Name: "bake", How: state.How{Robot: "kiln"}}
	ready := func() bool { return w.Ready(t.Context(), id, step) }
	if !w.Ready(t.Context(), id, &state.Step{Name: "x", How: state.How{Robot: "plain"}}) {
		t.Error("a robot without a warm-up has to wait")
	}
	for try := 1; try <= 3; try++ {
		for range 2 { // asking again begins nothing more
			if ready() {
				t.Fatalf("ready before try %d has ended", try)
			}
		}
		k.let <- struct{}{}
		<-woken
		if !w.Open() {
			t.Error("a run would end though nobody has seen how the warm-up went")
		}
		if try == 3 {
			break
		}
		if ready() || w.Open() {
			t.Error("tried again without a pause")
		}
		due, dated := w.Due(time.Time{}, false, true)
		if want := now.Add(time.Duration(try) * time.Minute); !dated || !due.Equal(want) {
			t.Fatalf("due %v, want %v", due, want)
		}
		now = due
	}
	first := ready()
	if again := ready(); !first || !again || k.tried.Load() != 3 || reasons != 2 {
		t.Errorf("not ready after %d tries, %d told", k.tried.Load(), reasons)
	}
	w.wg.Wait()
}

// slow is a robot whose warm-up ends with its context alone.
type slow struct{ steps.Robot }

func (slow) WarmUp(ctx context.Context, _ map[string]any) error { <-ctx.Done(); return ctx.Err() }

// A run that drains does not wait for a warm-up, and tells nobody that it was ended.
func TestDrainingEndsAWarmUp(t *testing.T) {
	drained := make(chan struct{})
	w := &WarmUps{rooms: rooms{robots: map[layout.Name]steps.Builtin{"slow": {Robot: slow{}}}},
		drained: drained, slots: make(chan struct{}, 1), now: time.Now, steps: map[string]*warmUp{},
		backoff: func(int) time.Duration { return time.Hour }, ended: func() {},
		note: func(queue.StepID, error) { t.Error("a reason was kept") }, grave: func(string) { t.Error("a person was told") }}
	if w.Ready(t.Context(), queue.StepID{Workflow: "w", Step: "bake"}, &state.Step{Name: "bake", How: state.How{Robot: "slow"}}) {
		t.Error("ready")
	}
	close(drained)
	w.wg.Wait()
}

// No more warm-ups run at once than the run has places.
func TestWarmUpsInTurn(t *testing.T) {
	k := &kiln{let: make(chan struct{})}
	ended := make(chan struct{}, 10)
	w := &WarmUps{rooms: rooms{robots: map[layout.Name]steps.Builtin{"kiln": {Robot: k}}},
		drained: make(chan struct{}), slots: make(chan struct{}, 2), now: time.Now, steps: map[string]*warmUp{},
		backoff: func(int) time.Duration { return time.Hour }, ended: func() { ended <- struct{}{} },
		note: func(queue.StepID, error) {}, grave: func(string) {}}
	for _, name := range []layout.Name{"a", "b", "c", "d", "e"} {
		w.Ready(t.Context(), queue.StepID{Workflow: "w", Step: name}, &state.Step{Name: string(name), How: state.How{Robot: "kiln"}})
	}
	time.Sleep(50 * time.Millisecond) // more would begin by now
	for range 5 {
		k.let <- struct{}{}
		<-ended
	}
	w.wg.Wait()
	if tried, most := k.tried.Load(), k.most.Load(); tried != 5 || most != 2 {
		t.Errorf("%d were warmed up, %d at once", tried, most)
	}
}
