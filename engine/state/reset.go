package state

import (
	"time"

	"bagpipe/engine/fault"
	"bagpipe/layout"
)

// Reset lets a step be done anew, whatever became of it; with After, also every
// step of the workflow that needs it.
type Reset struct {
	Key      KeyFunc
	Workflow string
	Step     layout.Name
	After    bool
	At       time.Time
	By       string
	Text     string

	// Seen is the status its author saw, and Attempt the attempt; the reset is
	// refused when the step has another by now. "" and zero: not looked at.
	Seen    Status
	Attempt layout.AttemptKey
}

func (e Reset) apply(x *Execution, d *Definition) (Transition, error) {
	s, i, err := x.locate("reset", e.Workflow, e.Step, d)
	if err != nil {
		return Transition{}, err
	}
	illegal := &IllegalError{Event: "reset", Item: x.Item, Workflow: e.Workflow, Step: e.Step}
	from := s.Status
	current, _, _ := s.Current()
	switch {
	case i < 0:
		illegal.Reason = "the step is not in the definition the workflow runs by"
	case i == 0:
		illegal.Reason = "the first step is completed by starting the workflow"
		illegal.Remedies = []fault.Remedy{{Verb: fault.Start, Item: x.Item, Run: d.Name}}
	case e.Seen != "" && e.Seen != from:
		illegal.Reason = "is " + string(from) + " by now, not " + string(e.Seen)
	case !e.Attempt.IsZero() && e.Attempt != current:
		illegal.Reason = "has been attempted again since: " + current.String()
	case from == InProgress:
		illegal.Reason = s.runningText()
	case from == Waiting && !x.pending(e.Workflow, e.Step, s) && !x.abandoned(e.Workflow, e.Step, s):
		illegal.Reason = "is waiting; there is nothing to reset"
	}
	if illegal.Reason != "" {
		return Transition{}, illegal
	}
	steps := []int{i}
	if e.After {
		steps = append(steps, d.After(i)...)
	}
	intents, err := e.intents(x, d, steps)
	if err != nil {
		return Transition{}, err
	}
	keys := make([]layout.IntentKey, len(intents)) // all are drawn before the record changes
	for n := range keys {
		if keys[n], err = e.Key(); err != nil {
			return Transition{}, err
		}
	}
	for n, in := range intents {
		x.intend(keys[n], in)
	}
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, Step: e.Step, From: from, To: Waiting, Attempt: current}, nil
}

// intents names every completion that is taken back, and the last failure. Of an
// attempt whose engine is gone nobody here knows the end. At the step itself it is
// passed by, as by a retry, and should it have completed, that stands when its copy is
// joined. At the steps after it worked on what is now made anew: it is taken back,
// whatever its end.
func (e Reset) intents(x *Execution, d *Definition, steps []int) (intents []Intent, err error) {
	for n, i := range steps {
		name := layout.Name(d.Steps[i].Name)
		_, s := x.Find(e.Workflow, name)
		add := func(kind string, k layout.AttemptKey) {
			intents = append(intents, Intent{Kind: kind, At: e.At, By: e.By, Text: e.Text, Workflow: e.Workflow, Step: name, Attempt: k})
		}
		for _, k := range x.done(e.Workflow, name, s) {
			add(ResetIntent, k)
		}
		switch {
		case s.Status == InProgress:
			return nil, &IllegalError{Event: "reset", Item: x.Item, Workflow: e.Workflow, Step: name, Reason: s.runningText()}
		case s.Status == Failed || x.pending(e.Workflow, name, s) || x.abandoned(e.Workflow, name, s):
			kind := ResetIntent
			k, a, _ := s.Current()
			if a.State == InProgress && n == 0 {
				kind = RetryIntent
			}
			add(kind, k)
		}
	}
	return intents, nil
}

// abandoned reports whether a step waits as its last attempt was lost, and nobody has
// let it be done anew since.
func (x *Execution) abandoned(workflow string, step layout.Name, s *StepRecord) bool {
	k, _, ok := s.Current()
	return s.Status == Waiting && ok && x.lost(workflow, step, k) && k.Compare(x.floor(workflow, step)) > 0
}
