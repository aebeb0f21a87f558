package packed

import (
	"iter"
	"slices"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// End is one attempt by a robot that ended its step for good.
type End struct {
	At      time.Time
	Attempt layout.AttemptKey
	Failed  bool
}

func (it *Item) clone() *Item {
	out := *it
	out.Runs = slices.Clone(it.Runs)
	for r := range out.Runs {
		out.Runs[r].Steps = slices.Clone(out.Runs[r].Steps)
	}
	return &out
}

// Item is what the index keeps of one work item.
type Item struct {
	ID         layout.ItemID
	Collection layout.Name
	Label      string
	Batch      string
	Parent     *layout.Parent // nil: it is no child
	Lane       layout.Name
	Created    time.Time
	Held       bool
	HeldBy     string // by whom, since when and why
	Broken     string // why the record cannot be read; such an item has no ready step
	Runs       []Run
	Milestones map[layout.Name]time.Time
	Facets     []string // what stands at the declared paths, as JSON; "": nothing
	Gone       bool     // its records were removed, and it is shown as broken
}

// Steps gives each step of the item: its run, and the step's place in it.
func (it *Item) Steps() iter.Seq2[*Run, int] {
	return func(yield func(*Run, int) bool) {
		for r := range it.Runs {
			for i := range it.Runs[r].Steps {
				if !yield(&it.Runs[r], i) {
					return
				}
			}
		}
	}
}

// Disposed reports whether the item is a tombstone, or about to become one: it has no runs.
func (it *Item) Disposed() bool {
	return len(it.Runs) == 0 && it.Broken == "" && !it.Milestones[state.Disposed].IsZero()
}

// Run gives the item's run of that name; nil where it has none.
func (it *Item) Run(name string) *Run {
	for r := range it.Runs {
		if it.Runs[r].Name == name {
			return &it.Runs[r]
		}
	}
	return nil
}

// Run is one workflow instance of an item.
type Run struct {
	Name   string // numbered: accession.1
	Plan   *state.Definition
	Status state.Status
	Steps  []Step // as in Plan.Steps

	Internal   string // the internal error that stopped it
	InternalAt time.Time
}

// Step is where one step of a run stands.
type Step struct {
	Status   state.Status
	Since    time.Time // when it came to stand so
	Attempts int
	Failures int           // attempts that failed, whatever came after
	CPU      time.Duration // of processors, that its attempts' programs took together; in milliseconds
	Idle     time.Duration // that instances had nothing to do before its attempts; in milliseconds
	Skip     string        // why the item does not need the step, as things are; such a step is skipped once it is ready
	Blocked  *state.Reason // as of the time it was computed; nil: ready
	Ends     []End         // kept of steps with a threshold alone
	Children int           // the most that an attempt made
	Again    bool          // a person let the step, or the item, go on, and nothing was done since
	Tried    []Tried       // its attempts that ended, in order; nil where Last says all
	Last                   // zero when there is no attempt

	own overlaid
}

// Last is the last attempt at a step.
type Last struct {
	Current layout.AttemptKey
	Runner  string
	Message string
	Kind    string        // of the last failure
	Waited  time.Duration // from when the step could start to its claim,
	Ran     time.Duration // and from its start to its end; in milliseconds
}

// overlaid keeps what a step's own item says of it, below what controls and other items
// lay over Blocked and Skip.
type overlaid struct {
	control *state.Reason // why it is out of the flow; nil: it is not
	but     *state.Reason // then: why it cannot start but for that
	blocked *state.Reason // Blocked and Skip by the item's own record
	skip    string
}

// StepID names a step of a workflow, whatever the item and the instance.
type StepID struct {
	Workflow string
	Step     layout.Name
}

// String is WORKFLOW/STEP.
func (s StepID) String() string { return s.Workflow + "/" + string(s.Step) }

// Tried is one attempt that ended, for what the steps' times are derived from.
type Tried struct {
	State  state.Status
	Ended  time.Time
	Waited time.Duration // from when it could start to its claim, in milliseconds
	Ran    time.Duration // in milliseconds
}
