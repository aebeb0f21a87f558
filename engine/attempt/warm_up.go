package attempt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// The rules are: a step whose robot declares a warm-up is claimed by this engine
// only after the warm-up has succeeded, once. It begins when the first item is
// ready for the step, and runs beside the work. One that fails is tried again
// after the pauses of the workspace's backoff; meanwhile other steps, and other
// engines, go on. Why a step is not warm stands in .bagpipe/warmup/ENGINE/, for
// status; it is no state, and goes with the engine.

// warmUpMost bounds a warm-up of a step without timeout.
const warmUpMost = 10 * time.Minute

// Warmth is what a run knows of its steps' warm-ups.
type Warmth struct {
	ctx     context.Context // ends the warm-ups that run
	needed  func(s *state.Step) bool
	begin   func(id queue.StepID, s *state.Step, n int) error // the n-th try
	ended   func()                                            // something may be claimed now, or has to be waited for
	backoff func(failures int) time.Duration
	now     func() time.Time
	tell    func(id queue.StepID, err error, again time.Time)

	wg sync.WaitGroup

	mu    sync.Mutex // guards steps and what is in them
	steps map[string]*warming
}

// warming is one step's warm-up.
type warming struct {
	running bool
	done    bool
	news    bool // ended since the dispatcher asked last
	tries   int
	again   time.Time // after a failure
}

// Ready tells whether a step may be claimed, and begins its warm-up if it has to.
// It never waits: the queue is locked meanwhile.
func (w *Warmth) Ready(id queue.StepID, s *state.Step) bool {
	if !w.needed(s) {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := id.String() + "\x00" + s.Robot + "\x00" + strings.Join(s.WarmUp, "\x00")
	st := w.steps[key]
	if st == nil {
		st = &warming{}
		w.steps[key] = st
	}
	st.news = false
	if st.done || st.running || w.ctx.Err() != nil || w.now().Before(st.again) {
		return st.done
	}
	st.running = true
	st.tries++
	w.wg.Go(func() { w.run(id, s, st, st.tries) })
	return false
}

func (w *Warmth) run(id queue.StepID, s *state.Step, st *warming, n int) {
	err := w.begin(id, s, n)
	w.mu.Lock()
	st.running, st.done, st.news = false, err == nil, true
	if err != nil {
		st.again = w.now().Add(w.backoff(n))
	}
	again := st.again
	w.mu.Unlock()
	if w.ctx.Err() == nil {
		w.tell(id, err, again)
	}
	w.ended()
}

// Open tells whether a warm-up runs, or has ended and nobody has looked since.
func (w *Warmth) Open() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, st := range w.steps {
		if st.running || st.news {
			return true
		}
	}
	return false
}

// Due brings the time of the next try forward of due.
func (w *Warmth) Due(due time.Time, dated bool) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, st := range w.steps {
		if !st.running && !st.done && !st.again.IsZero() && (!dated || st.again.Before(due)) {
			due, dated = st.again, true
		}
	}
	return due, dated
}

// NewWarmth is the run's own; stop ends and awaits what runs.
func (at *Attempts) NewWarmth(ctx context.Context, drained <-chan struct{}, grave func(string)) (w *Warmth, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	at.forgetWarmth()
	watched := make(chan struct{})
	w = &Warmth{
		ctx: ctx, now: at.ledger.Now, needed: at.needsWarmUp, steps: map[string]*warming{}, ended: at.index.Loaded().Nudge,
		begin: func(id queue.StepID, s *state.Step, n int) error { return at.warmUp(ctx, id, s, n) },
		backoff: func(failures int) time.Duration {
			return at.settings.Current().Settings.Backoff().Wait(failures, rand.Float64())
		},
		tell: func(id queue.StepID, err error, again time.Time) {
			if err := at.noteWarmth(id, err); err != nil {
				at.ledger.Log.Warn("note a warm-up", "step", id.String(), "err", err)
			}
			if err != nil {
				grave(fmt.Sprintf("%s is not claimed by this engine: its warm-up failed: %v; it is tried again at %s", id, err, layout.FormatTime(again)))
			}
		},
	}
	go func() {
		defer close(watched)
		select {
		case <-drained:
			cancel()
		case <-ctx.Done():
		}
	}()
	return w, func() {
		cancel()
		w.wg.Wait()
		<-watched
		_ = os.RemoveAll(at.warmthDir(at.ledger.ID)) // it says nothing once the engine is gone
	}
}

// needsWarmUp tells whether the robot of a step declares a warm-up.
func (at *Attempts) needsWarmUp(s *state.Step) bool {
	_, ok := at.robots[layout.Name(s.Robot)].Robot.(steps.Warmer)
	return ok || s.WarmUp != nil
}

// warmUp runs the warm-up of a step, for the n-th time.
func (at *Attempts) warmUp(ctx context.Context, id queue.StepID, s *state.Step, n int) error {
	limit := time.Duration(s.Timeout)
	if limit <= 0 {
		limit = warmUpMost
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if s.WarmUp == nil {
		return at.robots[layout.Name(s.Robot)].Robot.(steps.Warmer).WarmUp(ctx, s.With)
	}
	scratch := filepath.Join(at.ledger.Path(layout.ScratchDir), string(at.ledger.ID), fmt.Sprintf("warmup-%s.%s-%d", id.Workflow, id.Step, n))
	if err := os.MkdirAll(scratch, 0o777); err != nil {
		return err
	}
	err := steps.WarmUpCommand(ctx, at.folder.ProgramPath(s.WarmUp), id.Step, scratch)
	return errors.Join(err, os.RemoveAll(scratch))
}

func (at *Attempts) warmthDir(id layout.EngineID) string {
	return filepath.Join(at.ledger.Path(layout.WarmUpDir), string(id))
}

// noteWarmth writes down why a step is not warm, or that it is.
func (at *Attempts) noteWarmth(id queue.StepID, cause error) error {
	dir := at.warmthDir(at.ledger.ID)
	file := filepath.Join(dir, id.Workflow+"."+string(id.Step))
	if cause == nil {
		if err := os.Remove(file); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(fmt.Sprintf("%s: the warm-up failed: %s\n", id, ledger.OneLine(cause.Error(), 500))), 0o666)
}

// forgetWarmth removes what engines left that were killed.
func (at *Attempts) forgetWarmth() {
	entries, _ := os.ReadDir(at.ledger.Path(layout.WarmUpDir)) // not there: nothing to remove
	for _, entry := range entries {
		if lives, err := at.ledger.Seat.Alive(layout.EngineID(entry.Name())); err == nil && !lives {
			_ = os.RemoveAll(at.warmthDir(layout.EngineID(entry.Name()))) // the next run will
		}
	}
}

// Cold lists what the living engines do not claim, and why.
func (at *Attempts) Cold(alive map[layout.EngineID]bool) []string {
	out := []string{}
	engines, _ := os.ReadDir(at.ledger.Path(layout.WarmUpDir)) // not there: nothing is cold
	for _, entry := range engines {
		if !alive[layout.EngineID(entry.Name())] {
			continue
		}
		notes, _ := filepath.Glob(filepath.Join(at.warmthDir(layout.EngineID(entry.Name())), "*"))
		for _, note := range notes {
			if text, err := os.ReadFile(note); err == nil {
				out = append(out, fmt.Sprintf("engine %s does not claim %s", entry.Name(), ledger.OneLine(string(text), 600)))
			}
		}
	}
	return out
}
