package state

import (
	"fmt"
	"math"
	"time"

	"bagpipe/layout"
)

// Claim begins an attempt; the engine commits it before the robot starts.
type Claim struct {
	Workflow string
	Step     layout.Name
	Attempt  layout.AttemptKey
	At       time.Time
	Runner   string
	Version  string // of the program
	// Unstarted is a claim of what is not begun yet, or by a version that told of no start.
	Unstarted bool
	Outside   bool      // who is at work is no robot of the engine, and may begin a manual step
	Progress  *Progress // what is told of it from outside; nil: nothing
}

// Note replaces what is told of an attempt that goes on outside.
type Note struct {
	Workflow string
	Step     layout.Name
	Attempt  layout.AttemptKey
	Progress Progress
}

// End ends an attempt. State is Completed, Skipped, Failed or Deferred.
type End struct {
	Workflow    string
	Step        layout.Name
	Attempt     layout.AttemptKey
	State       Status
	Unavailable bool // Failed, as the robot was not there
	Kind        string
	Started     time.Time
	At          time.Time
	RetryAt     time.Time // Deferred, or Failed and retried by itself
	Message     string
	Text        string
	Milestones  []layout.Name // besides the step's own
	Progress    *Progress     // what the robot told last
	Yield
}

// Lost declares an attempt lost, its engine being dead.
type Lost struct {
	Key      layout.IntentKey
	Workflow string
	Step     layout.Name
	Attempt  layout.AttemptKey
	At       time.Time
	By       string
}

// Internal gives an attempt up because Bagpipe itself was at fault: the workflow
// fails, and no step of it.
type Internal struct {
	Key      layout.IntentKey
	LostKey  layout.IntentKey
	Workflow string
	Step     layout.Name
	Attempt  layout.AttemptKey
	At       time.Time
	By       string
	Text     string
}

// locateReady finds a step that nothing blocks at a time; illegal is for what else
// its event may be refused for.
func (x *Execution) locateReady(event, workflow string, step layout.Name, d *Definition, at time.Time, outside bool) (s *StepRecord, i int, illegal *IllegalError, err error) {
	if s, i, err = x.locate(event, workflow, step, d); err != nil {
		return nil, 0, nil, err
	}
	illegal = &IllegalError{Event: event, Item: x.Item, Workflow: workflow, Step: step}
	if i < 0 {
		illegal.Reason = "the step is not in the definition the workflow runs by"
		return nil, 0, nil, illegal
	}
	if why := x.Blocked(workflow, d, i, at); why != nil && (why.Code != "manual" || !outside) {
		illegal.Reason = why.Text
		return nil, 0, nil, illegal
	}
	return s, i, illegal, nil
}

func (e Claim) apply(x *Execution, d *Definition) (Transition, error) {
	s, i, illegal, err := x.locateReady("claim", e.Workflow, e.Step, d, e.At, e.Outside)
	if err != nil {
		return Transition{}, err
	}
	if why := x.Unneeded(e.Workflow, d, i); why != "" {
		illegal.Reason = "is not needed: " + why
		return Transition{}, illegal
	}
	if err := overtaken("claim", x, e.Workflow, e.Step, s, e.Attempt); err != nil {
		return Transition{}, err
	}
	s.dropDeferred(e, x.Workflows[e.Workflow])
	a := Attempt{State: InProgress, Claimed: e.At, Started: e.At, Runner: e.Runner, Version: e.Version, Progress: e.Progress}
	if e.Unstarted {
		a.Started = time.Time{}
	}
	s.put(e.Attempt, a)
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, Step: e.Step, From: Waiting, To: InProgress, Attempt: e.Attempt}, nil
}

func (e Note) apply(x *Execution, d *Definition) (Transition, error) {
	s, _, err := x.locate("note", e.Workflow, e.Step, d)
	if err != nil {
		return Transition{}, err
	}
	if err := x.current("note", e.Workflow, e.Step, s, e.Attempt); err != nil {
		return Transition{}, err
	}
	a := s.Attempts[e.Attempt]
	a.Progress = &e.Progress
	s.put(e.Attempt, a)
	return Transition{Workflow: e.Workflow, Step: e.Step, From: InProgress, To: InProgress, Attempt: e.Attempt}, nil
}

// overtaken refuses a new attempt whose key is not above all that are there.
func overtaken(event string, x *Execution, workflow string, step layout.Name, s *StepRecord, k layout.AttemptKey) error {
	if last, _, ok := s.Current(); ok && k.Compare(last) <= 0 {
		return &IllegalError{Event: event, Item: x.Item, Workflow: workflow, Step: step, Err: ErrStale,
			Reason: fmt.Sprintf("attempt %s has been overtaken by %s", k, last)}
	}
	return nil
}

// dropDeferred removes the engine's own deferred attempts, which decide nothing
// any more: a step that polls for weeks must not make the record grow. The one with which
// a dated workflow was begun stays.
func (s *StepRecord) dropDeferred(e Claim, of *Workflow) {
	for k, a := range s.Attempts {
		first := of.dated() && a.begun().Equal(of.Started) && !e.Unstarted
		if a.State == Deferred && k.Engine == e.Attempt.Engine && !first {
			delete(s.Attempts, k)
		}
	}
}

// current checks the fence: the attempt must be the highest, in progress, and
// not declared lost.
func (x *Execution) current(event, workflow string, step layout.Name, s *StepRecord, k layout.AttemptKey) error {
	illegal := &IllegalError{Event: event, Item: x.Item, Workflow: workflow, Step: step, Err: ErrStale}
	last, a, ok := s.Current()
	switch {
	case !ok || last != k:
		illegal.Reason = fmt.Sprintf("attempt %s has been overtaken by %s", k, last)
	case x.lost(workflow, step, k):
		illegal.Reason = fmt.Sprintf("attempt %s was declared lost", k)
	case a.State != InProgress:
		illegal.Reason = fmt.Sprintf("attempt %s has ended: %s", k, a.State)
	default:
		return nil
	}
	return illegal
}

func (e End) apply(x *Execution, d *Definition) (Transition, error) {
	s, i, err := x.locate("end", e.Workflow, e.Step, d)
	if err != nil {
		return Transition{}, err
	}
	if err := x.current("end", e.Workflow, e.Step, s, e.Attempt); err != nil {
		return Transition{}, err
	}
	step := &Step{} // of one that is not in the definition any more
	if i >= 0 {
		step = &d.Steps[i]
	}
	a := s.Attempts[e.Attempt]
	a.State, a.Kind, a.Message, a.Text = e.State, e.Kind, e.Message, e.Text
	a.Started, a.Ended, a.NotBefore, a.Progress, a.Yield = e.Started, e.At, roundTime(e.RetryAt), e.Progress, e.Yield
	if e.Unavailable && step.Optional {
		a.State, a.Kind, a.NotBefore, a.Message = Skipped, "", time.Time{}, "not available: "+e.Message
	}
	a.Elapsed = max(0, math.Round(e.At.Sub(e.Started).Seconds()*1000)/1000) // the clock may have been set back
	s.put(e.Attempt, a)
	if a.State == Completed {
		x.reach(e.At, layout.Name(step.Milestone))
	}
	x.reach(e.At, e.Milestones...)
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, Step: e.Step, From: InProgress, To: s.Status, Attempt: e.Attempt, Children: a.Children}, nil
}

func (e Lost) apply(x *Execution, d *Definition) (Transition, error) {
	s, _, err := x.locate("recover", e.Workflow, e.Step, d)
	if err != nil {
		return Transition{}, err
	}
	if err := x.current("recover", e.Workflow, e.Step, s, e.Attempt); err != nil {
		return Transition{}, err
	}
	x.intend(e.Key, Intent{Kind: LostIntent, At: e.At, By: e.By, Workflow: e.Workflow, Step: e.Step, Attempt: e.Attempt})
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, Step: e.Step, From: InProgress, To: s.Status, Attempt: e.Attempt}, nil
}

func (e Internal) apply(x *Execution, d *Definition) (Transition, error) {
	tr, err := Lost{Key: e.LostKey, Workflow: e.Workflow, Step: e.Step, Attempt: e.Attempt, At: e.At, By: e.By}.apply(x, d)
	if err != nil {
		return tr, err
	}
	x.intend(e.Key, Intent{Kind: InternalIntent, At: e.At, By: e.By, Text: e.Text, Workflow: e.Workflow})
	x.Compute(e.Workflow, d)
	return tr, nil
}
