package engine

import (
	"time"

	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// The rules are: a threshold counts the ends after the step was enabled last, and both
// are told apart by the times in the record, as that is what every engine sees. So
// where a clock was set back, an end is not written before the control that it comes
// after, and an enabling not before the ends that it forgives; what an attempt took
// stays what it was.

// endTimes are when an attempt at a step began and ended.
func (e *Engine) endTimes(rec *record, a *Attempt, started time.Time) (from, to time.Time) {
	to = e.o.Now()
	step := rec.plan.Step(a.Step)
	if step == nil || step.Threshold == nil || step.Threshold.Count == 0 {
		return started, to
	}
	since := e.controls.current().Since(refOf(a.Workflow, a.Step))
	if behind := since.Add(time.Millisecond).Sub(to); !since.IsZero() && behind > 0 {
		return started.Add(behind), to.Add(behind)
	}
	return started, to
}

// enabledAt is when a step is enabled. Load must have been called.
func (e *Engine) enabledAt(ref state.Ref) time.Time {
	at := e.o.Now()
	for it := range e.index.With(queue.Ending) {
		for r := range it.Runs {
			run := &it.Runs[r]
			for i := range run.Steps {
				if refOf(run.Name, layout.Name(run.Plan.Steps[i].Name)) != ref {
					continue
				}
				for _, end := range run.Steps[i].Ends {
					if end.At.After(at) {
						at = end.At
					}
				}
			}
		}
	}
	return at
}
