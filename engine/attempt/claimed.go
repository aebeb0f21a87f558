package attempt

import (
	"context"
	"time"

	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/runner"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// claimed is an attempt that this engine has claimed, and what its end records.
type claimed struct {
	layout.AttemptRef
	by          Worker
	at          time.Time
	started     time.Time              // zero: the robot was not called
	progress    *state.Progress        // what the robot told last
	state.Yield                        // children are counted once they are registered
	placed      layout.Manifest        // of an item whose object stays in a catalog; zero: it does not
	opened      folder.Opened          // what the robot saw of it
	checks      []steps.Check          // what the robot found of the object's quality
	given       given                  // what the robot was given
	told        map[layout.ItemID]bool // the children that its program told of while it ran
	unended     error                  // why its end is not in the history; nil: it is
}

// Worker is who performs an attempt, as its record names it.
type Worker struct {
	Engine  layout.EngineID
	Runner  string
	Version string // of the program
	Request string // that the commit answers; "": none
}

// here is this process as the performer.
func here(l *ledger.Ledger) Worker {
	return Worker{Engine: l.ID, Runner: l.Runner(), Version: l.Version}
}

// robot is who causes the attempt's transitions.
func (c *claimed) robot(l *ledger.Ledger) ledger.Actor {
	who := l.ByRobot(c.Step)
	who.Agent, who.Request = string(c.Step)+" "+c.by.Runner, c.by.Request
	return who
}

// following takes the step with which the item of w goes on, and its lock file; nil: it is left
// to the queue, where it is found again if its lock file cannot be had now.
func following(w *Work) *Work {
	it := w.Entry.Item
	run := it.Run(w.Entry.Run)
	if w.GoOn == nil || run == nil || it.Batch != "" || it.Parent != nil {
		return nil
	}
	status := func(i int) state.Status { return run.Steps[i].Status }
	skipped := func(i int) bool { return run.Plan.Steps[i].OnRequest && run.Steps[i].Skip != "" }
	n := run.Plan.Following(w.Entry.N, func(i int) bool { return status(i) == state.Waiting && !skipped(i) },
		func(i int) bool { return status(i) == state.Completed || status(i) == state.Skipped || skipped(i) })
	if n < 0 || run.Plan.Steps[n].Manual {
		return nil
	}
	next := w.GoOn(n)
	if next != nil && (within(next.plan) == 0 || lock(next) != nil) {
		next.Forgo()
		next.release()
		return nil
	}
	return next
}

// goOn is the work that was claimed with the end of w; nil: none was.
func goOn(ctx context.Context, w *Work) *runner.Work {
	next := w.next
	if next == nil {
		return nil
	}
	if next.attempt == nil {
		next.Forgo()
		next.release()
		return nil
	}
	next.a.cancels.watch(next.attempt.AttemptRef)
	does := next.ForPool(ctx)
	does.Claimed = next.claiming
	return &does
}

// claims is the claim of next behind the transition that rec comes from; nil: it cannot be
// claimed, or was. A step that more than the item's own record has a say in is left to the queue.
func claims(next *Work, rec *ledger.Record) *ledger.Follow {
	a, e := next.a, next.Entry
	x, step := rec.Execution, e.Step
	w := x.Workflows[e.Run]
	if e.N >= len(rec.Plan.Steps) || layout.Name(rec.Plan.Steps[e.N].Name) != step || w.Steps[step].Status != state.Waiting {
		return nil
	}
	now := a.ledger.Now()
	if !alone(a, rec, e.Run, step) || x.Blocked(e.Run, rec.Plan, e.N, now) != nil || x.Unneeded(e.Run, rec.Plan, e.N) != "" || a.index.Loaded().Overtaken(e) || a.checkOpen(rec, e.Run, step) != nil {
		return nil
	}
	by := here(a.ledger)
	c := &claimed{AttemptRef: layout.AttemptRef{Item: e.Item.ID, Workflow: e.Run, Step: step, Key: x.NextKey(step, by.Engine)}, by: by, at: now}
	return &ledger.Follow{Who: c.robot(a.ledger), Made: func() { next.attempt = c }, More: a.control.ClaimControl(c.AttemptRef),
		Event: state.Claim{Workflow: e.Run, Step: step, Attempt: c.Key, At: now, Runner: by.Runner, Version: by.Version}}
}
