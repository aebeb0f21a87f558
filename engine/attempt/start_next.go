package attempt

import (
	"context"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/runner"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// startNext is the robot of a step with starts: it starts the workflow, once.
func (w *Work) startNext(ctx context.Context, c *steps.Call) (steps.Result, error) {
	a, next := w.a, w.plan.Starts
	_, rec, err := a.ledger.ReadTip(c.Item, "")
	if err != nil {
		return steps.Result{}, err
	}
	x := rec.Execution
	if name := x.StartedFrom(c.Workflow, c.Step); name != "" {
		return steps.Result{Message: name + " was started by this step before"}, nil
	}
	if chain := x.Starters(c.Workflow); slices.Contains(chain, next) {
		slices.Reverse(chain)
		return steps.Result{}, steps.SystemFailure("workflow %s would lead to itself: %s → %s", next, strings.Join(chain, " → "), next)
	}
	f, skip, err := a.settings.Startable(next)
	if err != nil {
		return steps.Result{}, steps.SystemFailure("%w", err)
	}
	name, err := a.ledger.Start(ctx, c.Item, f, skip, time.Time{}, c.Workflow+"/"+string(c.Step), a.ledger.ByRobot(c.Step))
	if err != nil {
		return steps.Result{}, steps.SystemFailure("%w", err)
	}
	return steps.Result{Message: name + " started"}, nil
}

// onward is how the item of a piece of work goes on with its next step.
type onward struct {
	// GoOn takes step n of the same run from the queue, once the work is ended well, if it is the
	// one that is to be done next; nil: it is left to the queue. What it gives is claimed with the
	// end, or forgone.
	GoOn  func(n int) *Work
	Forgo func() // called before done when what GoOn gave was not claimed
	next  *Work
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
	does.Claimed = next.attempt.claiming
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
