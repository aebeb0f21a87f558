package attempt

import (
	"context"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/steps"
)

// keepProgress has the end of an attempt that failed record what was told last; one that
// came to its end is past all of it.
func (w *Work) keepProgress() {
	if w.scratch == "" || w.Err == nil {
		return
	}
	if p, ok := steps.ReadProgress(w.scratch); ok {
		w.attempt.progress = &state.Progress{At: p.At, Note: ledger.Printable(p.Note), Percent: p.Percent}
	}
}

// What a program tells of its step is committed when it changes, and not more often than
// noteEvery; what comes between is overtaken by what comes next.
const (
	noteLook  = time.Second
	noteEvery = 10 * time.Second
)

// commitNotes commits what the program tells, until ctx ends.
func (w *Work) commitNotes(ctx context.Context) {
	tick := time.NewTicker(noteLook)
	defer tick.Stop()
	var told steps.Progress
	var at time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p, ok := steps.ReadProgress(w.scratch)
		if !ok || p.Note == told.Note && p.Percent == told.Percent || time.Since(at) < noteEvery {
			continue
		}
		told, at = p, time.Now()
		if err := w.note(ctx, p); err != nil && ctx.Err() == nil {
			w.warn("commit what a step's program tells", "err", err) // it is shown all the same
		}
	}
}

func (w *Work) note(ctx context.Context, p steps.Progress) error {
	a, c := w.a, w.attempt
	said := state.Progress{At: p.At, Note: ledger.Printable(p.Note), Percent: p.Percent}
	_, err := a.ledger.Step(ctx, c.Item, c.Workflow, c.robot(a.ledger), said.Note, func(*ledger.Record) (state.Event, error) {
		return state.Note{Workflow: c.Workflow, Step: c.Step, Attempt: c.Key, Progress: said}, nil
	}, nil)
	return err
}

// telling commits what the program tells while it runs, until the function it gives is called.
func (w *Work) telling(ctx context.Context) (stop func()) {
	if w.plan.Command == nil || w.scratch == "" {
		return func() {} // the bytes of a built-in robot are shown alone
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); w.commitNotes(ctx) }()
	return func() { cancel(); <-done }
}
