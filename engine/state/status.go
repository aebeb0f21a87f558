package state

import (
	"fmt"
	"strings"
	"time"

	"bagpipe/layout"
)

// counting gives the attempts that decide the step's status, in order; see the
// package comment.
func (x *Execution) counting(workflow string, step layout.Name, s *StepRecord) []layout.AttemptKey {
	floor := x.retriedUpTo(workflow, step)
	var keys []layout.AttemptKey
	for _, k := range s.Keys() {
		if k.Compare(floor) <= 0 || s.Attempts[k].State == Deferred || x.lost(workflow, step, k) {
			continue
		}
		keys = append(keys, k)
	}
	return keys
}

// stepStatus computes the status of a step from its attempts and the intents.
func (x *Execution) stepStatus(workflow string, step layout.Name, s *StepRecord) Status {
	skipped := false
	for _, a := range s.Attempts {
		switch a.State {
		case Completed:
			return Completed
		case Skipped:
			skipped = true
		}
	}
	if skipped {
		return Skipped
	}
	keys := x.counting(workflow, step, s)
	if len(keys) == 0 {
		return Waiting
	}
	last := s.Attempts[keys[len(keys)-1]]
	if last.State == Failed && !last.NotBefore.IsZero() {
		return Waiting
	}
	return last.State
}

// Failures counts the failed attempts since the last retry by a person.
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

// Compute writes every status of the named workflow instance.
func (x *Execution) Compute(workflow string, d *Definition) {
	w := x.Workflows[workflow]
	failed, open := false, false
	for i := range d.Steps {
		name := layout.Name(d.Steps[i].Name)
		s := w.Steps[name]
		if s == nil {
			s = &StepRecord{}
			w.Steps[name] = s
		}
		s.Status = x.stepStatus(workflow, name, s)
		switch {
		case s.Status == Failed && !d.Steps[i].Optional:
			failed = true
		case s.Status == Waiting || s.Status == InProgress:
			open = true
		}
	}
	switch {
	case failed:
		w.Status = Failed
	case open:
		w.Status = InProgress
	default:
		w.Status = Completed
	}
}

// satisfied tells whether the steps that need this one may go on.
func satisfied(s *StepRecord, optional bool) bool {
	if s == nil {
		return false
	}
	return s.Status == Completed || s.Status == Skipped || s.Status == Failed && optional
}

// Reason is why a step cannot be claimed now.
type Reason struct {
	Code  string    // held, failed, running, done, requires, manual, date, retry
	Text  string    // for people
	Steps []string  // requires: the open prerequisites
	Until time.Time // date, retry: when it can
}

// Blocked says why the step is not ready at now, or nil when it is. Statuses
// must have been computed. Manual steps that are otherwise ready answer with
// the code "manual".
func (x *Execution) Blocked(workflow string, d *Definition, i int, now time.Time) *Reason {
	w := x.Workflows[workflow]
	step := &d.Steps[i]
	s := w.Steps[layout.Name(step.Name)]
	switch s.Status {
	case Completed, Skipped:
		return &Reason{Code: "done", Text: "is " + string(s.Status)}
	case Failed:
		return &Reason{Code: "failed", Text: "failed; it needs a person: fix the cause, then retry"}
	case InProgress:
		k, a, _ := s.Current()
		return &Reason{Code: "running", Text: fmt.Sprintf("is in progress by %s, attempt %s", a.Runner, k)}
	}
	if holds := x.Holds(); len(holds) > 0 {
		return &Reason{Code: "held", Text: "is held " + x.HoldText(holds[0])}
	}
	if w.Status == Failed {
		return &Reason{Code: "failed", Text: "the workflow has a failed step"}
	}
	if open := x.openPrerequisites(w, d, i); len(open) > 0 {
		return &Reason{Code: "requires", Text: "waits for " + strings.Join(open, ", "), Steps: open}
	}
	if now.Before(w.NotBefore) {
		return &Reason{Code: "date", Text: "waits until " + layout.FormatTime(w.NotBefore), Until: w.NotBefore}
	}
	if k, a, ok := s.Current(); ok && now.Before(a.NotBefore) && k.Compare(x.retriedUpTo(workflow, layout.Name(step.Name))) > 0 {
		return &Reason{Code: "retry", Text: "is tried again at " + layout.FormatTime(a.NotBefore) + ": " + a.Message, Until: a.NotBefore}
	}
	if _, skip := w.Skip[layout.Name(step.Name)]; step.Manual && !skip {
		return &Reason{Code: "manual", Text: "waits for a person"}
	}
	return nil
}

// HoldText says by whom, since when and why.
func (x *Execution) HoldText(hold layout.IntentKey) string {
	h := x.Intents[hold]
	return strings.TrimSuffix(fmt.Sprintf("by %s since %s: %s", h.By, layout.FormatTime(h.At), h.Text), ": ")
}

func (x *Execution) openPrerequisites(w *Workflow, d *Definition, i int) (open []string) {
	for _, p := range d.Prerequisites(i) {
		if !satisfied(w.Steps[layout.Name(d.Steps[p].Name)], d.Steps[p].Optional) {
			open = append(open, d.Steps[p].Name)
		}
	}
	return open
}
