package attempt

import (
	"context"
	"errors"

	"bagpipe/engine/control"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
	"bagpipe/engine/runner"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// mayRun tells, just before the robot starts, whether its step has been disabled
// since the claim, or is about to be.
func (w *Work) mayRun() bool {
	ref, step := control.RefOf(w.attempt.Workflow, w.attempt.Step), w.plan
	c := w.a.control.Current().Steps[ref]
	if c.Status == state.StepDisabled {
		return c.Trial != nil && c.Trial.Item == w.attempt.Item
	}
	if w.a.control.Tripped(ref) {
		return false
	}
	if step.Threshold == nil || step.Threshold.Count == 0 {
		return true
	}
	_, _, reached := w.a.control.Reached(ref, step, c.At, true)
	return !reached
}

// suspect notes a failure of this step that will be counted, until it is.
func (w *Work) suspect() {
	step := w.plan
	var later *steps.Later
	var internal *InternalError
	var cancelled *cancelledError
	if step.Threshold == nil || step.Threshold.Count == 0 || w.Err == nil || errors.As(w.Err, &later) ||
		errors.As(w.Err, &internal) || errors.As(w.Err, &cancelled) || errors.Is(w.Err, runner.ErrInterrupted) {
		return
	}
	if steps.KindOf(w.Err) == steps.System && w.stepState().Attempts < step.Retries {
		return // it is tried again
	}
	w.a.control.Suspend(control.RefOf(w.attempt.Workflow, w.attempt.Step), 1)
	w.attempt.suspected = true
}

// checkThreshold looks at the threshold of the step that just ended.
func (w *Work) checkThreshold(ctx context.Context) error {
	ref := control.RefOf(w.attempt.Workflow, w.attempt.Step)
	err := w.a.control.Trip(ctx, ref, w.plan)
	if w.attempt.suspected {
		w.a.control.Suspend(ref, -1)
	}
	return err
}

// passedOver says why an optional step that is disabled is skipped on this item;
// "" when it is not: the item may be its trial.
func (w *Work) passedOver() string {
	if !w.plan.Optional {
		return ""
	}
	c := w.a.control.Current().Steps[control.RefOf(w.Entry.Run, w.Entry.Step)]
	open, why := c.Open(w.Entry.Item.ID, w.Entry.Run, w.a.ledger.Now(), func(t *state.Trial) bool { return index.Stands(w.a.index.Loaded(), t, w.Entry.Step) })
	if open {
		return ""
	}
	return why
}

// passOver skips an optional step that is disabled.
func (a *Attempts) passOver(ctx context.Context, id layout.ItemID, workflow string, step layout.Name, why string) error {
	text := ""
	_, err := a.ledger.Step(ctx, id, workflow, a.ledger.ByEngine(), why, func(rec *ledger.Record) (state.Event, error) {
		c, err := a.control.ControlsAt(rec.At)
		if err != nil {
			return nil, err
		}
		_, text = c.Steps[control.RefOf(workflow, step)].Open(id, workflow, a.ledger.Now(), func(t *state.Trial) bool { return a.control.TrialStands(rec.At, t, step) })
		return state.Unneeded{Workflow: workflow, Step: step, Attempt: rec.Execution.NextKey(step, a.ledger.ID),
			At: a.ledger.Now(), By: a.ledger.ByEngine().Agent, Why: text}, nil
	}, nil)
	return err
}
