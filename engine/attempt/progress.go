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
func (c *claimed) keepProgress(scratch string, failed error) {
	if scratch == "" || failed == nil {
		return
	}
	if p, ok := steps.ReadProgress(scratch); ok {
		c.progress = &state.Progress{At: p.At, Note: ledger.Printable(p.Note), Percent: p.Percent}
	}
}

// What a program tells of its step is committed when it changes, and not more often than
// noteEvery; what comes between is overtaken by what comes next.
const (
	noteLook  = time.Second
	noteEvery = 10 * time.Second
)

// notes commits what the program of an attempt tells while it runs.
type notes struct {
	ledger  *ledger.Ledger
	of      *claimed
	scratch string
	warn    func(text string, more ...any)
}

// keep goes on until ctx ends.
func (n notes) keep(ctx context.Context) {
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
		p, ok := steps.ReadProgress(n.scratch)
		if !ok || p.Note == told.Note && p.Percent == told.Percent || time.Since(at) < noteEvery {
			continue
		}
		told, at = p, time.Now()
		if err := n.commit(ctx, p); err != nil && ctx.Err() == nil {
			n.warn("commit what a step's program tells", "err", err) // it is shown all the same
		}
	}
}

func (n notes) commit(ctx context.Context, p steps.Progress) error {
	c := n.of
	said := state.Progress{At: p.At, Note: ledger.Printable(p.Note), Percent: p.Percent}
	_, err := n.ledger.Step(ctx, c.Item, c.Workflow, c.robot(n.ledger), said.Note, func(*ledger.Record) (state.Event, error) {
		return state.Note{Workflow: c.Workflow, Step: c.Step, Attempt: c.Key, Progress: said}, nil
	}, nil)
	return err
}

// start begins; stop waits for its end.
func (n notes) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); n.keep(ctx) }()
	return func() { cancel(); <-done }
}
