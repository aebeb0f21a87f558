package state

import (
	"maps"
	"slices"
	"time"

	"bagpipe/layout"
)

const executionSchema = 1

// Status is the status of a step or of a workflow.
type Status string

// Statuses. Deferred is the state of an attempt only: it asked to be called
// again later.
const (
	Waiting    Status = "waiting"
	InProgress Status = "in-progress"
	Completed  Status = "completed"
	Skipped    Status = "skipped"
	Failed     Status = "failed"
	Deferred   Status = "deferred"
)

// Kinds of failure.
const (
	ContentKind = "content"
	SystemKind  = "system"
)

// Kinds of intent.
const (
	HoldIntent    = "hold"
	ReleaseIntent = "release"
	RetryIntent   = "retry"
	LostIntent    = "lost"
)

// unknown holds the fields of an object that this version does not know: the
// key and its raw JSON.
type unknown map[string]string

// Execution is the record of one item.
type Execution struct {
	Item       layout.ItemID
	Intents    map[layout.IntentKey]Intent
	Milestones map[layout.Name]time.Time
	Workflows  map[string]*Workflow // keyed by numbered name: accession.1
	unknown    unknown
}

// Intent is something a person or an engine wants; it is only ever added.
type Intent struct {
	Kind     string
	At       time.Time
	By       string
	Text     string
	Workflow string
	Step     layout.Name
	Attempt  layout.AttemptKey
	Target   layout.IntentKey
	unknown  unknown
}

// Workflow is one instance of a workflow on the item.
type Workflow struct {
	Name      string // of the definition
	Digest    string // of the definition: sha256:HEX
	Created   time.Time
	NotBefore time.Time
	Skip      map[layout.Name]string // steps this item does not need, and why
	Status    Status                 // computed
	Steps     map[layout.Name]*StepRecord
	unknown   unknown
}

// StepRecord holds the attempts at one step.
type StepRecord struct {
	Status   Status // computed
	Attempts map[layout.AttemptKey]Attempt
	unknown  unknown
}

// Attempt is one attempt at one step. A person's act has By and no Runner.
type Attempt struct {
	State     Status
	Kind      string // of a failure: content or system
	Claimed   time.Time
	Started   time.Time
	Ended     time.Time
	Elapsed   float64   // seconds
	NotBefore time.Time // of a failed or deferred one: when it is tried again by itself
	Runner    string    // host:pid
	By        string
	Message   string
	Text      string
	unknown   unknown
}

// Keys gives the attempts in order.
func (s *StepRecord) Keys() []layout.AttemptKey {
	keys := slices.Collect(maps.Keys(s.Attempts))
	slices.SortFunc(keys, layout.AttemptKey.Compare)
	return keys
}

// Current is the attempt with the highest key; ok is false when there is none.
func (s *StepRecord) Current() (k layout.AttemptKey, a Attempt, ok bool) {
	for key, att := range s.Attempts {
		if !ok || key.Compare(k) > 0 {
			k, a, ok = key, att, true
		}
	}
	return k, a, ok
}

// NextKey is the key of the next attempt by engine.
func (s *StepRecord) NextKey(engine layout.EngineID) layout.AttemptKey {
	k, _, _ := s.Current()
	return layout.AttemptKey{N: k.N + 1, Engine: engine}
}

// Find gives a workflow instance and one of its steps; nil when absent.
func (x *Execution) Find(workflow string, step layout.Name) (*Workflow, *StepRecord) {
	w := x.Workflows[workflow]
	if w == nil {
		return nil, nil
	}
	return w, w.Steps[step]
}

// Names gives the workflow instances in order of their creation.
func (x *Execution) Names() []string {
	names := slices.Sorted(maps.Keys(x.Workflows))
	slices.SortStableFunc(names, func(a, b string) int {
		return x.Workflows[a].Created.Compare(x.Workflows[b].Created)
	})
	return names
}

// Holds gives the keys of the holds that no release has ended, oldest first.
func (x *Execution) Holds() []layout.IntentKey {
	var holds []layout.IntentKey
	for k, i := range x.Intents {
		if i.Kind == HoldIntent && !x.released(k) {
			holds = append(holds, k)
		}
	}
	slices.Sort(holds)
	return holds
}

func (x *Execution) released(hold layout.IntentKey) bool {
	for _, i := range x.Intents {
		if i.Kind == ReleaseIntent && i.Target == hold {
			return true
		}
	}
	return false
}

// lost tells whether an intent declares the attempt lost.
func (x *Execution) lost(workflow string, step layout.Name, k layout.AttemptKey) bool {
	for _, i := range x.Intents {
		if i.Kind == LostIntent && i.Workflow == workflow && i.Step == step && i.Attempt == k {
			return true
		}
	}
	return false
}

// Lost tells whether the attempt lost its claim: an intent says so, or a later
// attempt stands beside it.
func (x *Execution) Lost(workflow string, step layout.Name, k layout.AttemptKey) bool {
	if x.lost(workflow, step, k) {
		return true
	}
	_, s := x.Find(workflow, step)
	if s == nil {
		return false
	}
	current, _, ok := s.Current()
	return ok && current.Compare(k) > 0 && s.Attempts[k].State == InProgress
}

// retriedUpTo is the highest attempt a retry names; attempts up to it no longer
// count.
func (x *Execution) retriedUpTo(workflow string, step layout.Name) (last layout.AttemptKey) {
	for _, i := range x.Intents {
		if i.Kind == RetryIntent && i.Workflow == workflow && i.Step == step && i.Attempt.Compare(last) > 0 {
			last = i.Attempt
		}
	}
	return last
}
