package attempt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// The rules are: a step whose robot declares a warm-up is claimed by this engine
// only after the warm-up has succeeded, once. It begins when the first item is
// ready for the step, and runs beside the work. One that fails is tried again
// after the pauses of the workspace's backoff; meanwhile other steps, and other
// engines, go on. Draining ends the warm-ups that run. The reason why a step is not
// warm stands in .bagpipe/warmup/ENGINE/, for status; it is no state, and goes with
// the engine.

// warmUpMost bounds a warm-up of a step without timeout.
const warmUpMost = 10 * time.Minute

// WarmUps are the warm-ups of one run.
type WarmUps struct {
	rooms
	local   local
	drained <-chan struct{}                     // closed when the run claims nothing more
	slots   chan struct{}                       // a place for each that may run at once
	ended   func()                              // told after each warm-up
	backoff func(failures int) time.Duration    // before the next try
	now     func() time.Time                    //
	note    func(id queue.StepID, failed error) // keeps the reason for status; nil removes it
	grave   func(text string)                   // tells a person

	wg sync.WaitGroup // of warm-ups that run

	mu    sync.Mutex // guards steps and the warm-ups in it
	steps map[string]*warmUp
}

// warmUp is one step's warm-up.
type warmUp struct {
	running bool
	done    bool
	news    bool // ended since the dispatcher asked last
	tries   int
	again   time.Time // after a failure
	failed  string    // the step, and why its last try failed
}

// NewWarmUps gives the warm-ups of a run, atOnce of which may run. End is to be called when
// nothing runs any more.
func (a *Attempts) NewWarmUps(atOnce int, drained <-chan struct{}, grave func(string)) *WarmUps {
	a.forgetColdSteps()
	return &WarmUps{rooms: a.rooms, local: a.local(), drained: drained, slots: make(chan struct{}, max(1, atOnce)), ended: a.index.Loaded().Nudge, now: a.ledger.Now, note: a.noteCold, grave: grave,
		backoff: func(failures int) time.Duration {
			return a.settings.Current().Settings.Backoff().Wait(failures, rand.Float64())
		},
		steps: map[string]*warmUp{}}
}

// End waits for the warm-ups, which draining ended.
func (w *WarmUps) End() {
	w.wg.Wait()
	w.local.live.Close()
	_ = os.Remove(w.coldDir(w.ledger.ID)) // it is empty unless a step stayed cold, of which why and status tell on
}

// Ready reports whether a step may be claimed, and begins its warm-up if it has to.
// It never waits: the queue is locked meanwhile.
func (w *WarmUps) Ready(ctx context.Context, id queue.StepID, s *state.Step) bool {
	if _, built := w.robots[layout.Name(s.Robot)].Robot.(steps.Warmer); !built && s.WarmUp == nil && !s.Persistent {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := id.String() + "\x00" + s.Robot + "\x00" + strings.Join(s.WarmUp, "\x00")
	u := w.steps[key]
	if u == nil {
		u = &warmUp{}
		w.steps[key] = u
	}
	u.news = false
	if u.done || u.running || ctx.Err() != nil || w.now().Before(u.again) {
		return u.done
	}
	u.running = true
	u.tries++
	n := u.tries
	w.wg.Go(func() { w.run(ctx, id, s, u, n) })
	return false
}

// run makes the n-th try of a warm-up.
func (w *WarmUps) run(ctx context.Context, id queue.StepID, s *state.Step, u *warmUp, n int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.wg.Go(func() {
		select {
		case <-w.drained:
			cancel()
		case <-ctx.Done():
		}
	})
	err := w.inTurn(ctx, func() error { return w.warmUp(ctx, id, s, n) })
	if what := coldWarmUp; err != nil {
		if s.Persistent && s.WarmUp == nil {
			what = coldRobot
		}
		err = fmt.Errorf("%s: %w", what, err)
	}
	w.mu.Lock()
	u.running, u.done, u.news = false, err == nil, true
	if err != nil {
		u.failed = coldLine(id, err)
		u.again = w.now().Add(w.backoff(n))
	}
	again := u.again
	w.mu.Unlock()
	if ctx.Err() == nil {
		w.note(id, err)
		if err != nil {
			w.grave(fmt.Sprintf("%s is not claimed by this engine: its %v; it is tried again at %s", id, err, layout.FormatTime(again)))
		}
	}
	w.ended()
}

// inTurn does it once there is a place.
func (w *WarmUps) inTurn(ctx context.Context, do func() error) error {
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
		return do()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *WarmUps) warmUp(ctx context.Context, id queue.StepID, s *state.Step, n int) error {
	limit := time.Duration(s.Timeout)
	if limit <= 0 || s.Persistent { // what initialize may take is bounded by itself; timeout is the item's
		limit = warmUpMost
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if s.Persistent {
		return w.local.live.Warm(ctx, w.local.spec(s, steps.Environment(nil, s.Env), id.Workflow))
	}
	if s.WarmUp == nil {
		return w.robots[layout.Name(s.Robot)].Robot.(steps.Warmer).WarmUp(ctx, s.With)
	}
	scratch := filepath.Join(w.ledger.Path(layout.ScratchDir), string(w.ledger.ID), fmt.Sprintf("warmup-%s.%s-%d", id.Workflow, id.Step, n))
	if err := os.MkdirAll(scratch, 0o777); err != nil {
		return err
	}
	err := steps.WarmUpCommand(ctx, w.folder.ProgramPath(s.WarmUp), steps.Environment(nil, s.Env), id.Step, scratch)
	return errors.Join(err, os.RemoveAll(scratch))
}

// Cold lists the steps that were never warm, with the reasons.
func (w *WarmUps) Cold() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	cold := []string{}
	for _, u := range w.steps {
		if !u.done && u.failed != "" {
			cold = append(cold, u.failed)
		}
	}
	slices.Sort(cold)
	return cold
}

// Open reports whether a warm-up runs, or has ended since Ready was asked last.
func (w *WarmUps) Open() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range w.steps {
		if u.running || u.news {
			return true
		}
	}
	return false
}

// mostWarmUps is how often a run that ends with its work tries one.
const mostWarmUps = 5

// Due brings due forward to the time of the next try; for a run that ends with its work only of
// those that were not tried very often.
func (w *WarmUps) Due(due time.Time, dated, ends bool) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range w.steps {
		if !u.running && !u.done && !u.again.IsZero() && (!ends || u.tries < mostWarmUps) && (!dated || u.again.Before(due)) {
			due, dated = u.again, true
		}
	}
	return due, dated
}
