package queue

import (
	"maps"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Item is what the index keeps of one work item.
type Item struct {
	ID         layout.ItemID
	Collection layout.Name
	Label      string
	Batch      string
	Parent     *layout.Parent // nil: it is no child
	Lane       layout.Name
	Rank       int // of the lane; 0 is the most urgent
	Created    time.Time
	Held       bool
	HeldBy     string // by whom, since when and why
	Broken     string // why the record cannot be read; such an item has no ready step
	Runs       []Run
	Milestones map[layout.Name]time.Time
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
	Message  string            // of the last attempt
	Kind     string            // of the last failure
	Runner   string            // of the last attempt
	Current  layout.AttemptKey // the last attempt; zero when there is none
	Skip     string            // why the item does not need it, as things are; such a step is skipped once it is ready
	Blocked  *state.Reason     // as of the time it was computed; nil: ready
	Ends     []End             // by robots, for good; kept of steps with a threshold alone
	Children int               // the most that an attempt made

	control *state.Reason // why it is out of the flow; nil: it is not
	own     *state.Reason // then: why it cannot start but for that

	ungated *state.Reason // Blocked and Skip by the item's own record,
	ownSkip string        // before what other items say is laid over them
}

// Summarise reads an item's record. Statuses are computed; plans gives the
// pinned definition for a digest.
func Summarise(x *state.Execution, m layout.Manifest, rank int, plans func(digest string) *state.Definition, now time.Time) *Item {
	it := &Item{
		ID: x.Item, Collection: m.Collection, Label: m.Label, Batch: m.Batch, Parent: m.Parent, Lane: m.Lane, Rank: rank,
		Created: m.Created, Milestones: maps.Clone(x.Milestones),
	}
	if holds := x.Holds(); len(holds) > 0 {
		it.Held, it.HeldBy = true, x.HoldText(holds[0])
	}
	names := x.Names()
	runs := make([]Run, len(names))
	asks := false
	for r, name := range names {
		w := x.Workflows[name]
		plan := plans(w.Digest)
		if it.Broken = unfit(name, w, plan); it.Broken != "" {
			return it
		}
		x.Compute(name, plan)
		runs[r] = Run{Name: name, Plan: plan, Status: w.Status, Steps: make([]Step, len(plan.Steps))}
		if broken := x.InternalErrors(name); len(broken) > 0 {
			runs[r].Internal, runs[r].InternalAt = x.Intents[broken[0]].Text, x.Intents[broken[0]].At
		}
		asks = asks || w.Active() && plan.AsksManifest()
	}
	if asks {
		x.Manifest, _ = m.Encode(nil) // it was decoded from JSON
	}
	for r := range runs {
		for i := range runs[r].Steps {
			runs[r].Steps[i] = summariseStep(x, runs[r].Name, runs[r].Plan, i, now)
		}
	}
	it.Runs = runs
	return it
}

// unfit says what keeps a workflow of an item from being continued.
func unfit(name string, w *state.Workflow, plan *state.Definition) string {
	base, number := state.Instance(name)
	switch {
	case plan == nil:
		return "the pinned definition " + w.Digest + " of " + name + " is missing"
	case number < 1 || base != w.Name || plan.Name != w.Name:
		return "the record names " + name + " as a run of workflow " + w.Name + ", and its pinned definition is that of " + plan.Name
	}
	return ""
}

func summariseStep(x *state.Execution, run string, plan *state.Definition, i int, now time.Time) Step {
	w := x.Workflows[run]
	rec := w.Steps[layout.Name(plan.Steps[i].Name)]
	s := Step{Status: rec.Status, Since: openSince(w, plan, i), Attempts: len(rec.Attempts), Blocked: x.Blocked(run, plan, i, now)}
	if s.Status == state.Waiting && w.Active() {
		s.Skip = x.Unneeded(run, plan, i)
	}
	if t := plan.Steps[i].Threshold; t != nil && t.Count > 0 {
		s.Ends = ends(x, run, layout.Name(plan.Steps[i].Name), rec)
	}
	for _, a := range rec.Attempts {
		s.Children = max(s.Children, a.Children)
	}
	s.ungated, s.ownSkip = s.Blocked, s.Skip
	if k, a, ok := rec.Current(); ok {
		s.Current = k
		s.Message, s.Kind, s.Runner = a.Message, a.Kind, a.Runner
		s.Since = a.Ended
		if a.State == state.InProgress {
			s.Since = a.Claimed
		}
	}
	return s
}

// openSince is when the last of the prerequisites of a step ended.
func openSince(w *state.Workflow, plan *state.Definition, i int) time.Time {
	since := w.Created
	for _, p := range plan.Prerequisites(i) {
		rec := w.Steps[layout.Name(plan.Steps[p].Name)]
		if _, a, ok := rec.Current(); ok && a.Ended.After(since) {
			since = a.Ended
		}
	}
	return since
}

// ready tells whether step i of run r can be claimed at now.
func (it *Item) ready(r *Run, i int, now time.Time) bool {
	if it.Broken != "" || it.Held {
		return false
	}
	why := r.Steps[i].Blocked
	return why == nil || !why.Until.IsZero() && !now.Before(why.Until)
}

// Waits tells whether step i of run r waits for a person alone.
func (it *Item) Waits(r *Run, i int) bool {
	why := r.Steps[i].Blocked
	return it.Broken == "" && why != nil && why.Code == "manual"
}

// open counts the steps that are expected to be done without a person: those
// that wait or run, up to the first that waits for one.
func (it *Item) open() (n int) {
	if it.Broken != "" || it.Held {
		return 0
	}
	for r := range it.Runs {
		run := &it.Runs[r]
		if run.Status == state.Failed || run.Status == state.Inactive {
			continue
		}
		for i := range run.Steps {
			if it.Waits(run, i) {
				break
			}
			if s := run.Steps[i].Status; s == state.Waiting || s == state.InProgress {
				n++
			}
		}
	}
	return n
}

// running tells whether a step is in progress.
func (it *Item) running() bool {
	for r := range it.Runs {
		for i := range it.Runs[r].Steps {
			if it.Runs[r].Steps[i].Status == state.InProgress {
				return true
			}
		}
	}
	return false
}
