package state

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
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
	Inactive   Status = "inactive"  // of a workflow only
	Scheduled  Status = "scheduled" // of a workflow only: dated for later, and nothing of it was begun
)

// UnderWay reports whether a workflow of that status goes on, now or from its date.
func (s Status) UnderWay() bool { return s == InProgress || s == Scheduled }

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
	CancelIntent  = "cancel"
	RemarkIntent  = "note" // a word of a person's

	ResetIntent      = "reset"
	MigrateIntent    = "migrate"
	DeactivateIntent = "deactivate"
	ActivateIntent   = "activate"
	InternalIntent   = "internal"
	OwnIntent        = "own"
	DisposeIntent    = "dispose"
)

// Registered is the milestone that every item reaches when its first workflow starts.
const Registered layout.Name = "registered"

// Disposed is the milestone of an item whose bytes are disposed of, or about to be.
const Disposed layout.Name = "disposed"

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

	// Manifest is the item's manifest.json, which conditions and dates are asked
	// of; it is no part of the record.
	Manifest []byte

	// Since is when the item came to be at its version, as its manifest says; zero of
	// the first. A workflow that is older is over. It is no part of the record.
	Since time.Time

	// Bare reports whether nothing was dropped yet, as the manifest says. It is no part of
	// the record.
	Bare bool

	// Site is the workspace that asks; no part of the record either.
	Site Site

	// Around says what other items make of a step that its own record lets start:
	// what keeps it from that, or why it is not needed. It is no part of the record
	// either; nil: nothing.
	Around func(workflow string, step layout.Name) (blocked *Reason, unneeded string)
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
	Digest   string
	Site     layout.Name // of an own
	unknown  unknown
}

// Workflow is one instance of a workflow on the item.
type Workflow struct {
	Name        string // of the definition
	Digest      string // of the definition it runs by: sha256:HEX
	StartedWith string // the digest it was started with; the same until it is moved
	StartedBy   string // the step that started it: WORKFLOW.N/STEP; "" for a person or the inbox
	Created     time.Time
	NotBefore   time.Time
	Skip        map[layout.Name]string // steps this item does not need, and why
	Status      Status                 // computed
	Started     time.Time              // computed; zero: it is scheduled
	Ended       time.Time              // computed
	Steps       map[layout.Name]*StepRecord
	unknown     unknown

	unknownOfDefinition unknown

	plan *Definition // of Digest, once Compute was given it
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
	Version   string    // of the program that made the attempt
	By        string
	Message   string
	Text      string
	Progress  *Progress // what its robot told last; nil: nothing
	Yield
	unknown unknown
}

// Same reports whether two attempts are recorded alike.
func (a *Attempt) Same(b *Attempt) bool {
	if a.Chosen != nil || b.Chosen != nil || a.Progress != nil || b.Progress != nil || a.unknown != nil || b.unknown != nil {
		return reflect.DeepEqual(a, b) // few are
	}
	return a.State == b.State && a.Ended.Equal(b.Ended) && a.Claimed.Equal(b.Claimed) && a.Started.Equal(b.Started) && a.NotBefore.Equal(b.NotBefore) &&
		a.Elapsed == b.Elapsed && a.Kind == b.Kind && a.Runner == b.Runner && a.Version == b.Version && a.By == b.By && a.Message == b.Message && a.Text == b.Text &&
		a.Children == b.Children && a.Content == b.Content && a.CPU == b.CPU && a.Idle == b.Idle && a.Inputs == b.Inputs && a.Outputs == b.Outputs
}

// Yield is what an attempt made, and what it took.
type Yield struct {
	Children int           // items it made, or found made by attempts before it
	Chosen   []layout.Name // of the steps that its step chooses from
	Content  bool          // it published the content of an item that was registered without
	CPU      time.Duration // processor time of its program; 0: not known
	Idle     time.Duration // that the instance of its program had nothing to do before; 0: none, or not known

	// Inputs and Outputs are digests, sha256:HEX, of what it was given and what it made; "": of a
	// workspace that is no site.
	Inputs, Outputs string
}

// Progress is how far a robot said it had come.
type Progress struct {
	At      time.Time
	Note    string
	Percent int // -1: not told
	unknown unknown
}

// Keys gives the attempts in order.
func (s *StepRecord) Keys() []layout.AttemptKey {
	keys := make([]layout.AttemptKey, 0, len(s.Attempts))
	for k := range s.Attempts {
		keys = append(keys, k)
	}
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

// NextKey is the key of the next attempt by engine at a step, unique among the
// attempts at steps of that name in all workflows of the item.
func (x *Execution) NextKey(step layout.Name, engine layout.EngineID) layout.AttemptKey {
	last := 0
	for _, w := range x.Workflows {
		if s := w.Steps[step]; s != nil {
			k, _, _ := s.Current()
			last = max(last, k.N)
		}
	}
	return layout.AttemptKey{N: last + 1, Engine: engine}
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

// Latest is the instance of a workflow with the highest number; "" when the item
// has none.
func (x *Execution) Latest(workflow string) (name string) {
	last := -1
	for n := range x.Workflows {
		if base, number := Instance(n); base == workflow && number > last {
			name, last = n, number
		}
	}
	return name
}

// Instance splits accession.2 into its definition's name and its number; the
// number is 0 where there is none.
func Instance(name string) (workflow string, number int) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return name, 0
	}
	n, err := strconv.Atoi(name[i+1:])
	if err != nil || n < 0 {
		return name, 0
	}
	return name[:i], n
}

// Numbered splits accession.1 into its definition's name and number.
func Numbered(workflow string) (name, n string) {
	i := strings.LastIndexByte(workflow, '.')
	if i < 0 {
		return workflow, ""
	}
	return workflow[:i], workflow[i+1:]
}

// any reports whether some attempt is as asked.
func (x *Execution) any(is func(workflow string, step layout.Name, k layout.AttemptKey, a Attempt) bool) bool {
	for name, w := range x.Workflows {
		for step, s := range w.Steps {
			for k, a := range s.Attempts {
				if is(name, step, k, a) {
					return true
				}
			}
		}
	}
	return false
}

func (x *Execution) attempt(workflow string, step layout.Name, k layout.AttemptKey) (Attempt, bool) {
	_, s := x.Find(workflow, step)
	if s == nil {
		return Attempt{}, false
	}
	a, there := s.Attempts[k]
	return a, there
}

func roundTime(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
