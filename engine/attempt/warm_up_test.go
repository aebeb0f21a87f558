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

// kiln is a robot that has to be warmed up.
type kiln struct{ fails, tried atomic.Int32 }

func (k *kiln) Run(context.Context, *steps.Call) (steps.Result, error) { return steps.Result{}, nil }
func (k *kiln) WarmUp(context.Context, map[string]any) error {
	if k.tried.Add(1) <= k.fails.Load() {
		return errors.New("cold")
	}
	return nil
}

func TestABuiltInRobotIsWarmedUpOnceAndTriedAgain(t *testing.T) {
	k := &kiln{}
	k.fails.Store(2)
	e := &Attempts{robots: map[layout.Name]steps.Builtin{"kiln": {Robot: k}, "plain": {Robot: steps.Func(nil)}}}
	woken := make(chan struct{}, 10)
	now := time.Unix(0, 0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &Warmth{ctx: ctx, needed: e.needsWarmUp, now: func() time.Time { return now }, steps: map[string]*warming{},
		begin:   func(id queue.StepID, s *state.Step, n int) error { return e.warmUp(ctx, id, s, n) },
		backoff: func(n int) time.Duration { return time.Duration(n) * time.Minute },
		ended:   func() { woken <- struct{}{} },
		tell:    func(queue.StepID, error, time.Time) {}}
	id, step := queue.StepID{Workflow: "w", Step: "bake"}, &state.Step{Name: "bake", How: state.How{Robot: "kiln"}}
	if !w.Ready(id, &state.Step{Name: "x", How: state.How{Robot: "plain"}}) {
		t.Error("a robot without a warm-up has to wait")
	}
	for try := 1; try <= 3; try++ {
		for range 2 { // asking again begins nothing more
			if w.Ready(id, step) {
				t.Fatalf("ready before try %d has ended", try)
			}
		}
		<-woken
		if !w.Open() {
			t.Error("a run would end though nobody has seen how the warm-up went")
		}
		if try == 3 {
			break
		}
		if w.Ready(id, step) || w.Open() {
			t.Error("tried again without a pause")
		}
		due, dated := w.Due(time.Time{}, false)
		if want := now.Add(time.Duration(try) * time.Minute); !dated || !due.Equal(want) {
			t.Fatalf("due %v, want %v", due, want)
		}
		now = due
	}
	first := w.Ready(id, step)
	if again := w.Ready(id, step); !first || !again || k.tried.Load() != 3 {
		t.Errorf("not ready after %d tries", k.tried.Load())
	}
	w.wg.Wait()
}
