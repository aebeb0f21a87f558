package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bagpipe/layout"
)

// Reason is why a step cannot be claimed now.
type Reason struct {
	Code  string    // disposed, held, inactive, version, failed, running, done, requires, content, manual, date, retry, batch, children, siblings, pool, site
	Text  string    // for people
	Steps []string  // requires: the open prerequisites
	Until time.Time // date, retry: when it can, if that is known
}

// Blocked says why the step is not ready at now, or nil when it is. Statuses
// must have been computed, of all workflows of the item where the definition
// names others. Manual steps that are otherwise ready answer with the code
// "manual", unless they are not needed.
func (x *Execution) Blocked(workflow string, d *Definition, i int, now time.Time) *Reason {
	w := x.Workflows[workflow]
	step := &d.Steps[i]
	s := w.Steps[layout.Name(step.Name)]
	switch s.Status {
	case Completed, Skipped:
		return DoneReason(s.Status)
	case Failed:
		return FailedReason()
	case InProgress:
		k, a, _ := s.Current()
		return RunningReason(a.Runner, k)
	}
	if in, is := Disposal(x); is {
		return &Reason{Code: "disposed", Text: in.DisposalText()}
	}
	if holds := x.Holds(); len(holds) > 0 {
		return &Reason{Code: "held", Text: "is held " + x.HoldText(holds[0])}
	}
	if why := x.stopped(workflow); why != nil {
		return why
	}
	if open := x.openPrerequisites(w, d, i); len(open) > 0 {
		return RequiresReason(open)
	}
	if x.Bare && step.needsContent() && !Fetched(x) {
		return &Reason{Code: "content", Text: "waits for the item's content: it was registered without"}
	}
	if x.Around != nil {
		if why, _ := x.Around(workflow, layout.Name(step.Name)); why != nil {
			return why
		}
	}
	if why := x.dated(workflow, w, step, s, now); why != nil {
		return why
	}
	if step.Manual && x.unneeded(workflow, d, i) == "" {
		return ManualReason()
	}
	return elsewhere(x)
}

// Fetched reports whether a step published the content of an item registered without.
func Fetched(x *Execution) bool {
	return x.any(func(workflow string, step layout.Name, k layout.AttemptKey, a Attempt) bool {
		return a.Content && a.State == Completed && !x.TakenBack(workflow, step, k)
	})
}

// Stopped says why nothing of a workflow starts, where no step of it is to blame;
// "" otherwise.
func (x *Execution) Stopped(workflow string) string {
	if x.Workflows[workflow].Status == Failed && len(x.InternalErrors(workflow)) == 0 {
		return ""
	}
	if why := x.stopped(workflow); why != nil {
		return why.Text
	}
	return ""
}

// stopped says why nothing of a workflow starts.
func (x *Execution) stopped(workflow string) *Reason {
	w := x.Workflows[workflow]
	if in, is := Disposal(x); is {
		return &Reason{Code: "disposed", Text: in.DisposalText()}
	}
	if w.Status == Inactive && x.superseded(w) {
		return &Reason{Code: "version", Text: "the workflow belongs to an earlier version of the item"}
	}
	switch w.Status {
	case Inactive:
		return &Reason{Code: "inactive", Text: "the workflow is inactive " + x.HoldText(x.Deactivations(workflow)[0])}
	case Failed:
		if broken := x.InternalErrors(workflow); len(broken) > 0 {
			return &Reason{Code: "failed", Text: "the workflow was stopped by an internal error " + x.HoldText(broken[0])}
		}
		return WorkflowFailedReason()
	}
	return nil
}

// dated says what time the step waits for: of several, the last, so that nothing of
// them is left once it has come.
func (x *Execution) dated(workflow string, w *Workflow, step *Step, s *StepRecord, now time.Time) (last *Reason) {
	until := func(t time.Time, r *Reason) {
		if now.Before(t) && (last == nil || t.After(last.Until)) {
			r.Until, last = t, r
		}
	}
	from, unclear := step.NotBefore.opens(w.Created, x.Manifest)
	if unclear != "" {
		return &Reason{Code: "date", Text: "waits for its date: " + unclear}
	}
	until(w.NotBefore, DateReason(w.NotBefore))
	until(from, DateReason(from))
	if k, a, ok := s.Current(); ok && k.Compare(x.floor(workflow, layout.Name(step.Name))) > 0 {
		until(a.NotBefore, RetryReason(a.NotBefore, a.Message))
	}
	return last
}

// HoldText says by whom, since when and why.
func (x *Execution) HoldText(hold layout.IntentKey) string {
	h := x.Intents[hold]
	return strings.TrimSuffix(fmt.Sprintf("by %s since %s: %s", h.By, layout.FormatTime(h.At), h.Text), ": ")
}

// unneeded says why the item does not need a step that could start; "" when it
// does.
func (x *Execution) unneeded(workflow string, d *Definition, i int) string {
	w, step := x.Workflows[workflow], &d.Steps[i]
	if why, skip := w.Skip[layout.Name(step.Name)]; skip {
		return "not applicable: " + why
	}
	for i := range step.When {
		if c := &step.When[i]; !c.Holds(x.Manifest) {
			return "not applicable: it is for items where " + c.String()
		}
	}
	return notChosen(x, workflow, d, i)
}

// notChosen says which of the steps before it decided that the step is not done.
func notChosen(x *Execution, workflow string, d *Definition, i int) string {
	name := layout.Name(d.Steps[i].Name)
	for _, p := range d.local[i] {
		route := &d.Steps[p]
		if !slices.Contains(route.Choose, string(name)) {
			continue
		}
		s := x.Workflows[workflow].Steps[layout.Name(route.Name)]
		for _, k := range x.done(workflow, layout.Name(route.Name), s) {
			a := s.Attempts[k]
			if a.State == Completed && a.Chosen != nil && !slices.Contains(a.Chosen, name) {
				return strings.TrimSuffix("not chosen by "+route.Name+": "+a.Message, ": ")
			}
		}
	}
	return ""
}

// Unneeded says why the item does not need a step, as things are now; "" when it
// does. It is asked once the step could start.
func (x *Execution) Unneeded(workflow string, d *Definition, i int) string {
	if why := x.unneeded(workflow, d, i); why != "" || x.Around == nil {
		return why
	}
	_, why := x.Around(workflow, layout.Name(d.Steps[i].Name))
	return why
}

func (x *Execution) openPrerequisites(w *Workflow, d *Definition, i int) (open []string) {
	for _, p := range d.local[i] {
		if !satisfied(w.Steps[layout.Name(d.Steps[p].Name)], d.Steps[p].Tolerated()) {
			open = append(open, d.Steps[p].Name)
		}
	}
	for _, r := range d.foreign[i] {
		if why := x.openForeign(r); why != "" {
			open = append(open, why)
		}
	}
	return open
}

// openForeign says what a step of another workflow still lacks.
func (x *Execution) openForeign(r Ref) string {
	name := x.Latest(r.Workflow)
	if name == "" {
		return r.String() + " (the item has no workflow " + r.Workflow + ")"
	}
	w := x.Workflows[name]
	s, tolerated := w.Steps[r.Step], false
	if w.plan != nil {
		if step := w.plan.Step(r.Step); step != nil {
			tolerated = step.Tolerated()
		}
	}
	switch {
	case s == nil:
		return r.String() + " (" + name + " has no such step)"
	case satisfied(s, tolerated):
		return ""
	}
	return name + "/" + string(r.Step)
}
