package state

import (
	"fmt"
	"strings"
	"time"

	"bagpipe/layout"
)

// Decide is a person's act on a step. State is Completed, Skipped or Failed.
type Decide struct {
	Workflow   string
	Step       layout.Name
	Attempt    layout.AttemptKey
	State      Status
	At         time.Time
	By         string
	Message    string
	Milestones []layout.Name // besides the step's own
}

// Unneeded skips a step that could start and that the item does not need; the
// reason is found here, unless there is none and Why says one.
type Unneeded struct {
	Workflow string
	Step     layout.Name
	Attempt  layout.AttemptKey
	At       time.Time
	By       string
	Why      string
}

// Retry lets a failed step be tried again.
type Retry struct {
	Key      layout.IntentKey
	Workflow string
	Step     layout.Name
	At       time.Time
	By       string
	Text     string
}

// OnErrorBy begins the name of who passes a failed step over by its onError: no person.
const OnErrorBy = "onError of "

// ByPerson reports whether a person decided what an attempt says.
func (a *Attempt) ByPerson() bool {
	return a.Runner == "" && strings.Contains(a.By, "<") && !strings.HasPrefix(a.By, OnErrorBy)
}

// Decided reports whether a person decided of a step since before.
func Decided(before, now *Execution) bool {
	return now.any(func(workflow string, step layout.Name, k layout.AttemptKey, a Attempt) bool {
		_, there := before.attempt(workflow, step, k)
		return !there && a.ByPerson()
	})
}

func (e Decide) apply(x *Execution, d *Definition) (Transition, error) {
	event := map[Status]string{Completed: "complete", Skipped: "skip", Failed: "fail"}[e.State]
	s, i, err := x.locate(event, e.Workflow, e.Step, d)
	if err != nil {
		return Transition{}, err
	}
	illegal := &IllegalError{Event: event, Item: x.Item, Workflow: e.Workflow, Step: e.Step}
	from := s.Status
	switch {
	case i < 0:
		illegal.Reason = "the step is not in the definition the workflow runs by"
		return Transition{}, illegal
	case from == Completed || from == Skipped:
		illegal.Reason = "is " + string(from) + " already"
		return Transition{}, illegal
	case from == InProgress:
		illegal.Reason = s.runningText()
		return Transition{}, illegal
	case x.Workflows[e.Workflow].Status == Inactive:
		illegal.Reason = x.stopped(e.Workflow).Text
		return Transition{}, illegal
	}
	// A skipped step satisfies those that need it, so skipping ahead would let the
	// workflow pass an open approval.
	if open := x.openPrerequisites(x.Workflows[e.Workflow], d, i); len(open) > 0 {
		illegal.Reason = "its prerequisites are open: " + strings.Join(open, ", ")
		return Transition{}, illegal
	}
	if err := overtaken(event, x, e.Workflow, e.Step, s, e.Attempt); err != nil {
		return Transition{}, err
	}
	a := Attempt{State: e.State, Started: e.At, Ended: e.At, By: e.By, Message: e.Message}
	if e.State == Failed {
		a.Kind = ContentKind
	}
	s.put(e.Attempt, a)
	if e.State == Completed {
		x.reach(e.At, layout.Name(d.Steps[i].Milestone))
	}
	x.reach(e.At, e.Milestones...)
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, Step: e.Step, From: from, To: s.Status, Attempt: e.Attempt}, nil
}

func (s *StepRecord) runningText() string {
	k, a, _ := s.Current()
	return fmt.Sprintf("is in progress by %s, attempt %s; wait for its end", a.Runner, k)
}

func (e Unneeded) apply(x *Execution, d *Definition) (Transition, error) {
	s, i, illegal, err := x.locateReady("skip", e.Workflow, e.Step, d, e.At, false)
	if err != nil {
		return Transition{}, err
	}
	why := x.Unneeded(e.Workflow, d, i)
	if why == "" && d.Steps[i].Optional {
		why = e.Why
	}
	if why == "" {
		illegal.Reason = "is needed"
		return Transition{}, illegal
	}
	if err := overtaken("skip", x, e.Workflow, e.Step, s, e.Attempt); err != nil {
		return Transition{}, err
	}
	s.put(e.Attempt, Attempt{State: Skipped, Started: e.At, Ended: e.At, By: e.By, Message: why})
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, Step: e.Step, From: Waiting, To: s.Status, Attempt: e.Attempt}, nil
}

func (e Retry) apply(x *Execution, d *Definition) (Transition, error) {
	s, _, err := x.locate("retry", e.Workflow, e.Step, d)
	if err != nil {
		return Transition{}, err
	}
	from := s.Status
	if from != Failed && !x.pending(e.Workflow, e.Step, s) {
		return Transition{}, &IllegalError{Event: "retry", Item: x.Item, Workflow: e.Workflow, Step: e.Step,
			Reason: "is " + string(from) + "; only a failed step, or one waiting for its next try, is retried"}
	}
	k, _, _ := s.Current()
	x.intend(e.Key, Intent{Kind: RetryIntent, At: e.At, By: e.By, Text: e.Text, Workflow: e.Workflow, Step: e.Step, Attempt: k})
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, Step: e.Step, From: from, To: s.Status, Attempt: k}, nil
}

// pending reports whether a step waits for its next try.
func (x *Execution) pending(workflow string, step layout.Name, s *StepRecord) bool {
	k, a, ok := s.Current()
	return s.Status == Waiting && ok && !a.NotBefore.IsZero() && k.Compare(x.floor(workflow, step)) > 0
}
