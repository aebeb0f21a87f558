package state

import (
	"errors"
	"fmt"
	"math"
	"time"

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
}

func (e *IllegalError) Error() string {
	if e.Step == "" {
		return fmt.Sprintf("%s %s: %s", e.Event, e.Item.Short(), e.Reason)
	}
	return fmt.Sprintf("%s %s %s/%s: %s", e.Event, e.Item.Short(), e.Workflow, e.Step, e.Reason)
}

func (e *IllegalError) Unwrap() error { return e.Err }

// Event is something that happens to an item; Apply has the rules.
type Event interface {
	apply(x *Execution, d *Definition) (Transition, error)
}

// Transition is what an event changed: the words of its commit.
type Transition struct {
	Workflow string
	Step     layout.Name // "" for hold and release
	From, To Status
	Attempt  layout.AttemptKey // zero for intents without one
}

// Start puts a workflow on the item; the first step is completed by it.
type Start struct {
	Workflow  string // numbered
	Attempt   layout.AttemptKey
	At        time.Time
	NotBefore time.Time
	Runner    string
	By        string
	Skip      map[layout.Name]string // steps not needed, and why
}

// Claim begins an attempt; the engine commits it before the robot starts.
type Claim struct {
	Workflow string
	Step     layout.Name
	Attempt  layout.AttemptKey
	At       time.Time
	Runner   string
}

// End ends an attempt. State is Completed, Skipped, Failed or Deferred.
type End struct {
	Workflow   string
	Step       layout.Name
	Attempt    layout.AttemptKey
	State      Status
	Kind       string
	Started    time.Time
	At         time.Time
	RetryAt    time.Time // Deferred, or Failed and retried by itself
	Message    string
	Text       string
	Milestones []layout.Name // besides the step's own
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

// Decide is a person's act on a step, or the engine's when the item does not
// need it. State is Completed, Skipped or Failed.
type Decide struct {
	Workflow string
	Step     layout.Name
	Attempt  layout.AttemptKey
	State    Status
	At       time.Time
	By       string
	Message  string
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

// Hold keeps every step of the item from starting. One that answers a commit
// names it, and is placed beside other holds.
type Hold struct {
	Key     layout.IntentKey
	At      time.Time
	By      string
	Text    string
	Answers string // a commit; "" for a person's own hold
}

// Release ends every hold that is known here. Key is called once for each.
type Release struct {
	Key  func() (layout.IntentKey, error)
	At   time.Time
	By   string
	Text string
}

// Apply makes ev happen to x, whose workflow the event names runs by d, and
// computes the statuses. An illegal event is an *IllegalError and leaves x as
// it was.
func Apply(x *Execution, d *Definition, ev Event) (Transition, error) {
	return ev.apply(x, d)
}

func (e Start) apply(x *Execution, d *Definition) (Transition, error) {
	first := layout.Name(d.Steps[0].Name)
	if x.Workflows[e.Workflow] != nil {
		return Transition{}, &IllegalError{Event: "start", Item: x.Item, Workflow: e.Workflow, Step: first, Reason: "the workflow has been started already"}
	}
	w := &Workflow{Name: d.Name, Digest: d.Digest, Created: e.At, NotBefore: e.NotBefore, Skip: e.Skip, Steps: map[layout.Name]*StepRecord{}}
	for i := range d.Steps {
		w.Steps[layout.Name(d.Steps[i].Name)] = &StepRecord{Attempts: map[layout.AttemptKey]Attempt{}}
	}
	w.Steps[first].Attempts[e.Attempt] = Attempt{State: Completed, Started: e.At, Ended: e.At, Runner: e.Runner, By: e.By}
	if x.Workflows == nil {
		x.Workflows = map[string]*Workflow{}
	}
	x.Workflows[e.Workflow] = w
	x.reach(d.Step(first), nil, e.At)
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, Step: first, From: Waiting, To: Completed, Attempt: e.Attempt}, nil
}

// locate finds the step an event names, with its statuses computed.
func (x *Execution) locate(event, workflow string, step layout.Name, d *Definition) (*StepRecord, int, error) {
	illegal := &IllegalError{Event: event, Item: x.Item, Workflow: workflow, Step: step}
	w := x.Workflows[workflow]
	if w == nil {
		illegal.Reason = "no such workflow on the item"
		return nil, 0, illegal
	}
	if w.Digest != d.Digest {
		illegal.Reason = "the workflow runs by another definition"
		return nil, 0, illegal
	}
	i := d.index(string(step))
	if i < 0 {
		illegal.Reason = "no such step in the workflow"
		return nil, 0, illegal
	}
	x.Compute(workflow, d)
	return w.Steps[step], i, nil
}

func (e Claim) apply(x *Execution, d *Definition) (Transition, error) {
	s, i, err := x.locate("claim", e.Workflow, e.Step, d)
	if err != nil {
		return Transition{}, err
	}
	illegal := &IllegalError{Event: "claim", Item: x.Item, Workflow: e.Workflow, Step: e.Step}
	if why := x.Blocked(e.Workflow, d, i, e.At); why != nil {
		illegal.Reason = why.Text
		return Transition{}, illegal
	}
	if k, _, ok := s.Current(); ok && e.Attempt.Compare(k) <= 0 {
		illegal.Reason, illegal.Err = fmt.Sprintf("attempt %s has been overtaken by %s", e.Attempt, k), ErrStale
		return Transition{}, illegal
	}
	s.dropDeferred(e.Attempt.Engine)
	s.put(e.Attempt, Attempt{State: InProgress, Claimed: e.At, Runner: e.Runner})
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, Step: e.Step, From: Waiting, To: InProgress, Attempt: e.Attempt}, nil
}

// dropDeferred removes the engine's own deferred attempts, which decide nothing
// any more: a step that polls for weeks must not make the record grow.
func (s *StepRecord) dropDeferred(engine layout.EngineID) {
	for k, a := range s.Attempts {
		if a.State == Deferred && k.Engine == engine {
			delete(s.Attempts, k)
		}
	}
}

func (s *StepRecord) put(k layout.AttemptKey, a Attempt) {
	if s.Attempts == nil {
		s.Attempts = map[layout.AttemptKey]Attempt{}
	}
	s.Attempts[k] = a
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
	a := s.Attempts[e.Attempt]
	a.State, a.Kind, a.Message, a.Text = e.State, e.Kind, e.Message, e.Text
	a.Started, a.Ended, a.NotBefore = e.Started, e.At, e.RetryAt
	a.Elapsed = math.Round(e.At.Sub(e.Started).Seconds()*1000) / 1000
	s.put(e.Attempt, a)
	if e.State == Completed {
		x.reach(&d.Steps[i], e.Milestones, e.At)
	}
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, Step: e.Step, From: InProgress, To: s.Status, Attempt: e.Attempt}, nil
}

// reach sets the step's milestone and others, unless they have been reached.
func (x *Execution) reach(s *Step, more []layout.Name, at time.Time) {
	if s.Milestone != "" {
		more = append(more[:len(more):len(more)], layout.Name(s.Milestone))
	}
	for _, m := range more {
		if x.Milestones == nil {
			x.Milestones = map[layout.Name]time.Time{}
		}
		if _, there := x.Milestones[m]; !there {
			x.Milestones[m] = at
		}
	}
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

func (x *Execution) intend(k layout.IntentKey, i Intent) {
	if x.Intents == nil {
		x.Intents = map[layout.IntentKey]Intent{}
	}
	x.Intents[k] = i
}

func (e Decide) apply(x *Execution, d *Definition) (Transition, error) {
	event := map[Status]string{Completed: "complete", Skipped: "skip", Failed: "fail"}[e.State]
	s, i, err := x.locate(event, e.Workflow, e.Step, d)
	if err != nil {
		return Transition{}, err
	}
	illegal := &IllegalError{Event: event, Item: x.Item, Workflow: e.Workflow, Step: e.Step}
	from := s.Status
	switch from {
	case Completed, Skipped:
		illegal.Reason = "is " + string(from) + " already"
		return Transition{}, illegal
	case InProgress:
		k, a, _ := s.Current()
		illegal.Reason = fmt.Sprintf("is in progress by %s, attempt %s; wait for its end", a.Runner, k)
		return Transition{}, illegal
	}
	// A skipped step satisfies those that need it, so skipping ahead would let the
	// workflow pass an open approval.
	if open := x.openPrerequisites(x.Workflows[e.Workflow], d, i); len(open) > 0 {
		illegal.Reason = "its prerequisites are open: " + join(open)
		return Transition{}, illegal
	}
	if k, _, ok := s.Current(); ok && e.Attempt.Compare(k) <= 0 {
		illegal.Reason, illegal.Err = fmt.Sprintf("attempt %s has been overtaken by %s", e.Attempt, k), ErrStale
		return Transition{}, illegal
	}
	a := Attempt{State: e.State, Started: e.At, Ended: e.At, By: e.By, Message: e.Message}
	if e.State == Failed {
		a.Kind = ContentKind
	}
	s.put(e.Attempt, a)
	if e.State == Completed {
		x.reach(&d.Steps[i], nil, e.At)
	}
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, Step: e.Step, From: from, To: s.Status, Attempt: e.Attempt}, nil
}

func (e Retry) apply(x *Execution, d *Definition) (Transition, error) {
	s, _, err := x.locate("retry", e.Workflow, e.Step, d)
	if err != nil {
		return Transition{}, err
	}
	from := s.Status
	k, a, ok := s.Current()
	pending := from == Waiting && ok && !a.NotBefore.IsZero() && k.Compare(x.retriedUpTo(e.Workflow, e.Step)) > 0
	if from != Failed && !pending {
		return Transition{}, &IllegalError{Event: "retry", Item: x.Item, Workflow: e.Workflow, Step: e.Step,
			Reason: "is " + string(from) + "; only a failed step, or one waiting for its next try, is retried"}
	}
	x.intend(e.Key, Intent{Kind: RetryIntent, At: e.At, By: e.By, Text: e.Text, Workflow: e.Workflow, Step: e.Step, Attempt: k})
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, Step: e.Step, From: from, To: s.Status, Attempt: k}, nil
}

func (e Hold) apply(x *Execution, _ *Definition) (Transition, error) {
	if holds := x.Holds(); len(holds) > 0 && e.Answers == "" {
		return Transition{}, &IllegalError{Event: "hold", Item: x.Item, Reason: "is held already, by " + x.Intents[holds[0]].By}
	}
	x.intend(e.Key, Intent{Kind: HoldIntent, At: e.At, By: e.By, Text: e.Text, Target: layout.IntentKey(e.Answers)})
	return Transition{}, nil
}

func (e Release) apply(x *Execution, _ *Definition) (Transition, error) {
	holds := x.Holds()
	if len(holds) == 0 {
		return Transition{}, &IllegalError{Event: "release", Item: x.Item, Reason: "is not held"}
	}
	keys := make([]layout.IntentKey, len(holds))
	for i := range holds {
		k, err := e.Key()
		if err != nil {
			return Transition{}, err
		}
		keys[i] = k
	}
	for i, h := range holds {
		x.intend(keys[i], Intent{Kind: ReleaseIntent, At: e.At, By: e.By, Text: e.Text, Target: h})
	}
	return Transition{}, nil
}
