package queue

import (
	"slices"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// End is one attempt by a robot that ended its step for good.
type End struct {
	At      time.Time
	Attempt layout.AttemptKey
	Failed  bool
}

// ends lists what thresholds look at; see the package comment of state.
func ends(x *state.Execution, run string, step layout.Name, rec *state.StepRecord) (out []End) {
	for _, k := range rec.Keys() {
		a := rec.Attempts[k]
		over := a.State == state.Completed || a.State == state.Skipped || a.State == state.Failed && a.NotBefore.IsZero()
		if over && a.By == "" && !x.Lost(run, step, k) {
			out = append(out, End{At: a.Ended, Attempt: k, Failed: a.State == state.Failed})
		}
	}
	return out
}

// Controlled gives the item with what controls say of its steps: off answers with
// why a step that could start otherwise, now or at its time, may not, or with nil.
// What it said before is taken back. The item itself is not changed.
func (it *Item) Controlled(off func(run *Run, i int) *state.Reason) *Item {
	out := it
	for r := range it.Runs {
		run := &it.Runs[r]
		for i := range run.Steps {
			was := run.Steps[i]
			is := was
			is.control, is.own, is.Blocked = nil, nil, was.Own()
			if is.startable() {
				is.control = off(run, i)
				is.bar(is.Blocked)
			}
			if is.control == nil && was.control == nil {
				continue
			}
			if out == it {
				out = it.clone()
			}
			out.Runs[r].Steps[i] = is
		}
	}
	return out
}

// Own is why the step cannot start but for controls.
func (s *Step) Own() *state.Reason {
	if s.control != nil {
		return s.own
	}
	return s.Blocked
}

// Off tells whether a control alone keeps the step from starting.
func (s *Step) Off() bool { return s.control != nil && !byOthers(s.own) }

// startable tells whether the step starts by itself, now or at its time, as soon as
// other items let it.
func (s *Step) startable() bool {
	return s.Status == state.Waiting && (s.ungated == nil || !s.ungated.Until.IsZero())
}

// latest is a control's reason, not before what the step waits for besides.
func latest(why, own *state.Reason) *state.Reason {
	if own == nil || why.Until.IsZero() || !own.Until.After(why.Until) {
		return why
	}
	later := *why
	later.Until = own.Until
	return &later
}

func (it *Item) clone() *Item {
	out := *it
	out.Runs = slices.Clone(it.Runs)
	for r := range out.Runs {
		out.Runs[r].Steps = slices.Clone(out.Runs[r].Steps)
	}
	return &out
}
