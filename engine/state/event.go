package state

import (
	"errors"
	"fmt"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/layout"
)

// ErrStale is an event of an attempt that is not the current one: its worker
// lost its claim, and what it did does not count.
var ErrStale = errors.New("the attempt is not the current one")

// IllegalError is an event the record does not allow. It changed nothing.
type IllegalError struct {
	Event    string
	Item     layout.ItemID
	Workflow string
	Step     layout.Name
	Reason   string
	Err      error // ErrStale, or nil
	Remedies []fault.Remedy
}

func (e *IllegalError) Error() string {
	switch {
	case e.Workflow == "":
		return fmt.Sprintf("%s %s: %s", e.Event, e.Item.Short(), e.Reason)
	case e.Step == "":
		return fmt.Sprintf("%s %s %s: %s", e.Event, e.Item.Short(), e.Workflow, e.Reason)
	}
	return fmt.Sprintf("%s %s %s/%s: %s", e.Event, e.Item.Short(), e.Workflow, e.Step, e.Reason)
}

func (e *IllegalError) Unwrap() error { return e.Err }

// FaultKind is always fault.Refused.
func (e *IllegalError) FaultKind() fault.Kind { return fault.Refused }

// FaultRemedies are acts that the record does allow.
func (e *IllegalError) FaultRemedies() []fault.Remedy { return e.Remedies }

// Event is something that happens to an item; the package comment has the rules.
type Event interface {
	apply(x *Execution, d *Definition) (Transition, error)
}

// Transition is what an event changed: the words of its commit.
type Transition struct {
	Workflow string
	Step     layout.Name       // "" for what is not about one step
	From, To Status            // of the step, or of the workflow without one
	Attempt  layout.AttemptKey // zero for intents without one
	Children int               // that the attempt made
}

// KeyFunc draws a new intent key.
type KeyFunc func() (layout.IntentKey, error)

// Apply makes ev happen to x, whose workflow the event names runs by d, and
// computes the statuses. An illegal event is an *IllegalError and leaves x as
// it was.
func Apply(x *Execution, d *Definition, ev Event) (Transition, error) {
	if err := refuseDisposed(x, ev); err != nil {
		return Transition{}, err
	}
	return ev.apply(x, d)
}

// find finds the workflow an event names, with its statuses computed.
func (x *Execution) find(event, workflow string, d *Definition) (*Workflow, error) {
	illegal := &IllegalError{Event: event, Item: x.Item, Workflow: workflow}
	w := x.Workflows[workflow]
	if w == nil {
		illegal.Reason = "no such workflow on the item"
		return nil, illegal
	}
	if w.Digest != d.Digest {
		illegal.Reason = "the workflow runs by another definition"
		return nil, illegal
	}
	x.Compute(workflow, d)
	return w, nil
}

// locate finds the step an event names, with its statuses computed. Its place is
// -1 for a step that is in the record and not in the definition.
func (x *Execution) locate(event, workflow string, step layout.Name, d *Definition) (*StepRecord, int, error) {
	w, err := x.find(event, workflow, d)
	if err != nil {
		return nil, 0, err
	}
	s := w.Steps[step]
	if s == nil {
		return nil, 0, &IllegalError{Event: event, Item: x.Item, Workflow: workflow, Step: step, Reason: "no such step in the workflow"}
	}
	return s, d.index(string(step)), nil
}

func (s *StepRecord) put(k layout.AttemptKey, a Attempt) {
	if s.Attempts == nil {
		s.Attempts = map[layout.AttemptKey]Attempt{}
	}
	s.Attempts[k] = a
}

// reach sets milestones, unless they have been reached.
func (x *Execution) reach(at time.Time, names ...layout.Name) {
	for _, m := range names {
		if m == "" {
			continue
		}
		if x.Milestones == nil {
			x.Milestones = map[layout.Name]time.Time{}
		}
		if _, there := x.Milestones[m]; !there {
			x.Milestones[m] = at
		}
	}
}
