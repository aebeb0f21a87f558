package state

import (
	"time"

	"bagpipe/layout"
)

// counting gives the attempts that decide the step's status, in order; see the
// package comment.
func (x *Execution) counting(workflow string, step layout.Name, s *StepRecord) []layout.AttemptKey {
	floor := x.floor(workflow, step)
	var keys []layout.AttemptKey
	for _, k := range s.Keys() {
		if k.Compare(floor) <= 0 || s.Attempts[k].State == Deferred || x.lost(workflow, step, k) {
			continue
		}
		keys = append(keys, k)
	}
	return keys
}

// done gives the attempts that completed or skipped the step and were not reset,
// in order.
func (x *Execution) done(workflow string, step layout.Name, s *StepRecord) (keys []layout.AttemptKey) {
	for _, k := range s.Keys() {
		if st := s.Attempts[k].State; (st == Completed || st == Skipped) && !x.TakenBack(workflow, step, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// stepStatus computes the status of a step from its attempts and the intents,
// and when it came to be so; the zero time where it is open.
func (x *Execution) stepStatus(workflow string, step layout.Name, s *StepRecord) (Status, time.Time) {
	if len(s.Attempts) == 0 {
		return Waiting, time.Time{}
	}
	if len(s.Attempts) == 1 { // most steps of most items
		for k, a := range s.Attempts {
			if (a.State == Completed || a.State == Skipped) && !x.TakenBack(workflow, step, k) {
				return a.State, a.Ended
			}
		}
	}
	var skipped time.Time
	skip := false
	for _, k := range x.done(workflow, step, s) {
		a := s.Attempts[k]
		if a.State == Completed {
			return Completed, a.Ended
		}
		skip, skipped = true, a.Ended
	}
	if skip {
		return Skipped, skipped
	}
	if at, is := lostCancelled(x, workflow, step, s); is {
		return Failed, at
	}
	keys := x.counting(workflow, step, s)
	if len(keys) == 0 {
		return Waiting, time.Time{}
	}
	last := s.Attempts[keys[len(keys)-1]]
	switch {
	case last.State == Failed && !last.NotBefore.IsZero():
		return Waiting, time.Time{}
	case last.State == Failed:
		return Failed, last.Ended
	}
	return last.State, time.Time{}
}

// Failures counts the failed attempts since the last retry or reset by a person.
func (x *Execution) Failures(workflow string, step layout.Name) (n int) {
	_, s := x.Find(workflow, step)
	if s == nil {
		return 0
	}
	for _, k := range x.counting(workflow, step, s) {
		if s.Attempts[k].State == Failed {
			n++
		}
	}
	return n
}

// Compute writes every status of the named workflow instance, which runs by d.
func (x *Execution) Compute(workflow string, d *Definition) {
	w := x.Workflows[workflow]
	w.plan = d
	open, broken := false, false
	var failed, last time.Time
	for i := range d.Steps {
		name := layout.Name(d.Steps[i].Name)
		s := w.Steps[name]
		if s == nil {
			s = &StepRecord{}
			w.Steps[name] = s
		}
		var since time.Time
		s.Status, since = x.stepStatus(workflow, name, s)
		switch {
		case s.Status == Failed && !d.Steps[i].Tolerated():
			failed = earliest(failed, since)
			open, broken = true, true
		case s.Status == Waiting || s.Status == InProgress:
			open = true
		}
		if since.After(last) {
			last = since
		}
	}
	x.computeOthers(workflow, d)
	w.Started = w.firstStart(d)
	for _, k := range x.InternalErrors(workflow) {
		failed, broken = earliest(failed, x.Intents[k].At), true
	}
	w.Ended = time.Time{}
	switch {
	case !open:
		w.Status, w.Ended = Completed, last
	case len(x.Deactivations(workflow)) > 0 || x.superseded(w) || disposed(x):
		w.Status = Inactive
	case broken && !goesOn(x, workflow, d):
		w.Status, w.Ended = Failed, failed
	case w.Started.IsZero():
		w.Status = Scheduled
	default:
		w.Status = InProgress
	}
}

// dated reports whether a workflow was to begin later than it was put on the item.
func (w *Workflow) dated() bool { return w.NotBefore.After(w.Created) }

// begun is when an attempt was claimed, or a person acted.
func (a *Attempt) begun() time.Time {
	if a.Claimed.IsZero() {
		return a.Started
	}
	return a.Claimed
}

// firstStart is when a workflow was begun; of a dated one, by the first attempt besides those
// that put it on the item. Zero: nothing was.
func (w *Workflow) firstStart(d *Definition) (first time.Time) {
	if !w.dated() {
		return w.Created
	}
	for name, s := range w.Steps {
		if string(name) == d.Steps[0].Name {
			continue
		}
		for _, a := range s.Attempts {
			if at := a.begun(); !at.IsZero() {
				first = earliest(first, at)
			}
		}
	}
	return first
}

// goesOn reports whether a workflow with a failed step has, by its definition, others left
// that do not need the failed one.
func goesOn(x *Execution, workflow string, d *Definition) bool {
	if d.AfterFailure != Independent || len(x.InternalErrors(workflow)) > 0 {
		return false
	}
	open, doomed := map[int]bool{}, map[int]bool{}
	for i := range d.Steps {
		switch x.Workflows[workflow].Steps[layout.Name(d.Steps[i].Name)].Status {
		case Waiting, InProgress:
			open[i] = true
		case Failed:
			if d.Steps[i].Tolerated() {
				continue
			}
			for _, j := range d.After(i) {
				doomed[j] = true
			}
		}
	}
	for i := range open {
		if !doomed[i] {
			return true
		}
	}
	return false
}

// Unfinished says why an item whose statuses are computed is not finished; "": it is.
func Unfinished(x *Execution, m layout.Manifest) string {
	if _, is := Disposal(x); is {
		if m.Disposed == nil {
			return "it is being disposed of"
		}
		return ""
	}
	if holds := x.Holds(); len(holds) > 0 {
		return "it is held " + x.HoldText(holds[0])
	}
	if at := AtWork(x); at != "" {
		return at + " is in progress"
	}
	for _, name := range x.Names() {
		if w := x.Workflows[name]; w.Status != Completed && !x.superseded(w) {
			return name + " is " + string(w.Status)
		}
	}
	return ""
}

// Unsettled says what of an item whose statuses are computed is not settled: the hold or the workflow, under way or failed,
// that it must not go elsewhere with; "": nothing. What is tolerated, or out of the queues, is settled.
func Unsettled(x *Execution, now time.Time) string {
	if holds := x.Holds(); len(holds) > 0 {
		return "held " + x.HoldText(Gravest(x, holds))
	}
	for _, name := range x.Names() {
		w := x.Workflows[name]
		if w.Status == Completed || w.Status == Inactive {
			continue
		}
		if w.Status != Failed {
			if step := w.first(func(_ *StepRecord, _ *Step, i int) bool {
				why := x.Blocked(name, w.plan, i, now)
				return why != nil && why.Code == ManualReason().Code
			}); step != "" {
				return name + " waits for a person (" + step + ")"
			}
			return name + " is " + string(w.Status)
		}
		if len(x.InternalErrors(name)) == 0 {
			if step := w.first(func(s *StepRecord, d *Step, _ int) bool { return s.Status == Failed && !d.Tolerated() }); step != "" {
				return name + " failed at " + step
			}
		}
		return name + " failed"
	}
	return ""
}

// first names the first step of a workflow whose statuses are computed that is so; "": none is.
func (w *Workflow) first(is func(s *StepRecord, d *Step, i int) bool) string {
	for i := range w.plan.Steps {
		if is(w.Steps[layout.Name(w.plan.Steps[i].Name)], &w.plan.Steps[i], i) {
			return w.plan.Steps[i].Name
		}
	}
	return ""
}

// superseded reports whether a workflow worked on a version of the item that has been
// replaced. It may be open all the same: a reset that was made apart comes with a join.
func (x *Execution) superseded(w *Workflow) bool { return w.Created.Before(x.Since) }

func disposed(x *Execution) bool {
	_, is := Disposal(x)
	return is
}

// computeOthers deals with the steps the definition does not have: those that
// were attempted keep a status, the rest of them are no part of the record.
func (x *Execution) computeOthers(workflow string, d *Definition) {
	w := x.Workflows[workflow]
	if len(w.Steps) == len(d.Steps) {
		return
	}
	for name, s := range w.Steps {
		if d.index(string(name)) >= 0 {
			continue
		}
		if len(s.Attempts) == 0 && len(s.unknown) == 0 {
			delete(w.Steps, name)
			continue
		}
		s.Status, _ = x.stepStatus(workflow, name, s)
	}
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// Active reports whether a workflow takes part in queues.
func (w *Workflow) Active() bool { return w.Status != Completed && w.Status != Inactive }

// Multiplied reports whether some step of the workflow may have made children: an attempt
// tells of them, or a step with a key of multipliers was attempted, and what it had made
// when its engine died is in no record but the children's.
func (w *Workflow) Multiplied() bool {
	for name, s := range w.Steps {
		if len(s.Attempts) == 0 {
			continue
		}
		if w.plan != nil {
			if step := w.plan.Step(name); step != nil && (step.ParentLast || step.Siblings != "" || step.PoolSize > 0) {
				return true
			}
		}
		for _, a := range s.Attempts {
			if a.Children > 0 {
				return true
			}
		}
	}
	return false
}

// satisfied reports whether the steps that need this one may go on.
func satisfied(s *StepRecord, tolerated bool) bool {
	if s == nil {
		return false
	}
	return s.Status == Completed || s.Status == Skipped || s.Status == Failed && tolerated
}
