package attempt

import (
	"context"
	"slices"
	"strings"
	"time"

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
