package control

import (
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// The rules are: a threshold counts the ends after the step was enabled last, and both
// are told apart by the times in the record, as that is what every engine sees. So
// where a clock was set back, an end is not written before the control that it comes
// after, and an enabling not before the ends that it forgives; what an attempt took
// stays what it was.

// EndTimes are when an attempt at a step began and ended.
func (pa *Panel) EndTimes(rec *ledger.Record, a layout.AttemptRef, started time.Time) (from, to time.Time) {
	to = pa.ledger.Now()
	step := pa.deployed(rec.Plan.Name, rec.Plan.Step(a.Step))
	if step == nil || step.Threshold == nil || step.Threshold.Count == 0 {
		return started, to
	}
	since := pa.Current().Since(RefOf(a.Workflow, a.Step))
	if behind := since.Add(time.Millisecond).Sub(to); !since.IsZero() && behind > 0 {
		return started.Add(behind), to.Add(behind)
	}
	return started, to
}
