package state

import (
	"fmt"
	"time"

	"bagpipe/layout"
)

// Cancel wants the attempt at a step that is in progress ended: its engine ends the robot
// and the attempt as failed. Should the engine be gone, the step has failed with the intent.
type Cancel struct {
	Key      layout.IntentKey
	Workflow string
	Step     layout.Name
	At       time.Time
	By       string
	Text     string
}

func (e Cancel) apply(x *Execution, d *Definition) (Transition, error) {
	s, _, err := x.locate("cancel", e.Workflow, e.Step, d)
	if err != nil {
		return Transition{}, err
	}
	illegal := &IllegalError{Event: "cancel", Item: x.Item, Workflow: e.Workflow, Step: e.Step}
	k, _, _ := s.Current()
	if s.Status != InProgress {
		illegal.Reason = "is " + string(s.Status) + "; nothing of it runs"
		return Transition{}, illegal
	}
	if in, is := Cancelled(x, e.Workflow, e.Step, k); is {
		illegal.Reason = in.CancelText() + " already; the attempt is about to end"
		return Transition{}, illegal
	}
	x.intend(e.Key, Intent{Kind: CancelIntent, At: e.At, By: e.By, Text: e.Text, Workflow: e.Workflow, Step: e.Step, Attempt: k})
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, Step: e.Step, From: InProgress, To: s.Status, Attempt: k}, nil
}

// Cancelled gives the intent that wants the attempt ended, the first of several.
func Cancelled(x *Execution, workflow string, step layout.Name, k layout.AttemptKey) (in Intent, is bool) {
	var first layout.IntentKey
	for key, i := range x.Intents {
		if i.Kind == CancelIntent && i.Workflow == workflow && i.Step == step && i.Attempt == k && (!is || key < first) {
			in, first, is = i, key, true
		}
	}
	return in, is
}

// CancelText says who cancelled, and why.
func (i Intent) CancelText() string {
	if i.Text == "" {
		return "cancelled by " + i.By
	}
	return fmt.Sprintf("cancelled by %s: %s", i.By, i.Text)
}

// lostCancelled is when the last attempt at a step was cancelled whose engine is gone: it
// is not made again by itself.
func lostCancelled(x *Execution, workflow string, step layout.Name, s *StepRecord) (at time.Time, is bool) {
	k, _, ok := s.Current()
	if !ok || !x.lost(workflow, step, k) || k.Compare(x.floor(workflow, step)) <= 0 {
		return at, false
	}
	in, is := Cancelled(x, workflow, step, k)
	return in.At, is
}

// Dispose takes the item out of everything, for good, as its bytes are about to be removed.
// Proposal is the key by which that was decided.
type Dispose struct {
	Key      layout.IntentKey
	At       time.Time
	By       string
	Text     string
	Proposal string
}

func (e Dispose) apply(x *Execution, _ *Definition) (Transition, error) {
	illegal := &IllegalError{Event: "dispose", Item: x.Item}
	holds := x.Holds()
	switch busy := x.Underway(); {
	case len(holds) > 0:
		illegal.Reason = "is held " + x.HoldText(holds[0])
	case busy != "":
		illegal.Reason = "is under way: " + busy
	default:
		x.intend(e.Key, Intent{Kind: DisposeIntent, At: e.At, By: e.By, Text: e.Text, Target: layout.IntentKey(e.Proposal)})
		x.reach(e.At, Disposed)
		for name, w := range x.Workflows {
			if w.plan != nil {
				x.Compute(name, w.plan)
			}
		}
		return Transition{}, nil
	}
	return Transition{}, illegal
}

// Disposal gives the intent by which an item is disposed of, the first of several.
func Disposal(x *Execution) (in Intent, is bool) {
	var first layout.IntentKey
	for key, i := range x.Intents {
		if i.Kind == DisposeIntent && (!is || key < first) {
			in, first, is = i, key, true
		}
	}
	return in, is
}

// refuseDisposed refuses all that may not happen any more to an item that is disposed of.
func refuseDisposed(x *Execution, ev Event) error {
	in, is := Disposal(x)
	if !is {
		return nil
	}
	switch ev := ev.(type) {
	case Remark, Lost, Own:
		return nil
	case Hold:
		if ev.Answers != "" {
			return nil
		}
	}
	return &IllegalError{Event: "change", Item: x.Item, Reason: in.DisposalText()}
}

// DisposalText says by whom an item was disposed of, when and why.
func (i Intent) DisposalText() string {
	return fmt.Sprintf("was disposed of by %s at %s: %s", i.By, layout.FormatTime(i.At), i.Text)
}

// Undispose takes out what began a disposal that was not lawful.
func Undispose(x *Execution) {
	for key, i := range x.Intents {
		if i.Kind == DisposeIntent {
			delete(x.Intents, key)
			if x.Milestones[Disposed].Equal(i.At) {
				delete(x.Milestones, Disposed)
			}
		}
	}
}
