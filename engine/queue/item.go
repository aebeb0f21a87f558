package queue

import (
	"maps"
	"slices"
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
	Created    time.Time
	Held       bool
	HeldBy     string // by whom, since when and why
	Broken     string // why the record cannot be read; such an item has no ready step
	Runs       []Run
	Milestones map[layout.Name]time.Time
	Facets     []string // what stands at the declared paths, as JSON; "": nothing
	Gone       bool     // its records were removed, and it is shown as broken
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
	Failures int               // attempts that failed, whatever came after
	Waited   time.Duration     // of the last attempt: from when it could start to its claim,
	Ran      time.Duration     // and from its start to its end; in milliseconds
	Skip     string            // why the item does not need it, as things are; such a step is skipped once it is ready
	Blocked  *state.Reason     // as of the time it was computed; nil: ready
	Ends     []End             // by robots, for good; kept of steps with a threshold alone
	Children int               // the most that an attempt made
	Again    bool              // a person let it, or the item, go on, and nothing was done since
	Tried    []Tried           // its attempts that ended, in order; nil where the fields above say it all

	control *state.Reason // why it is out of the flow; nil: it is not
	own     *state.Reason // then: why it cannot start but for that

	ungated *state.Reason // Blocked and Skip by the item's own record,
	ownSkip string        // before what other items say is laid over them
}

// Summarise reads an item's record. Statuses are computed; plans gives the
// pinned definition for a digest.
func Summarise(x *state.Execution, m layout.Manifest, plans func(digest string) *state.Definition, now time.Time) *Item {
	return SummariseInto(&Item{}, x, m, plans, now)
}

// SummariseInto is Summarise, in the memory of an item that nobody needs any more.
func SummariseInto(it *Item, x *state.Execution, m layout.Manifest, plans func(digest string) *state.Definition, now time.Time) *Item {
	runs := it.Runs[:0]
	*it = Item{
		ID: x.Item, Collection: m.Collection, Label: m.Label, Batch: m.Batch, Parent: m.Parent, Lane: m.Lane,
		Created: m.Created.UTC(),
	}
	if len(x.Milestones) > 0 {
		it.Milestones = maps.Clone(x.Milestones)
	}
	if holds := x.Holds(); len(holds) > 0 {
		it.Held, it.HeldBy = true, x.HoldText(holds[0])
	}
	names := x.Names()
	runs = slices.Grow(runs, len(names))[:len(names)]
	asks := false
	for r, name := range names {
		w := x.Workflows[name]
		plan := plans(w.Digest)
		if it.Broken = unfit(name, w, plan); it.Broken != "" {
			return it
		}
		x.Compute(name, plan)
		steps := slices.Grow(runs[r].Steps[:0], len(plan.Steps))[:len(plan.Steps)]
		runs[r] = Run{Name: name, Plan: plan, Status: w.Status, Steps: steps}
		if broken := x.InternalErrors(name); len(broken) > 0 {
			runs[r].Internal, runs[r].InternalAt = x.Intents[broken[0]].Text, x.Intents[broken[0]].At
		}
		asks = asks || w.Active() && plan.AsksManifest()
	}
	if asks && x.Manifest == nil {
		x.Manifest, _ = m.Encode(nil) // it was decoded from JSON
	}
	var room [8]last
	for r := range runs {
		lasts := lastOf(room[:0], x.Workflows[runs[r].Name], runs[r].Plan)
		for i := range runs[r].Steps {
			summariseStep(&runs[r].Steps[i], x, &runs[r], i, lasts, now)
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

// last is what the attempts at a step come to.
type last struct {
	rec      *state.StepRecord
	key      layout.AttemptKey // of the last attempt; zero: there is none
	attempt  state.Attempt
	failures int
	children int
}

// lastOf looks at the attempts of all steps of a workflow.
func lastOf(out []last, w *state.Workflow, plan *state.Definition) []last {
	out = slices.Grow(out, len(plan.Steps))[:len(plan.Steps)]
	for i := range out {
		l := &out[i]
		*l = last{rec: w.Steps[layout.Name(plan.Steps[i].Name)]}
		for k, a := range l.rec.Attempts {
			l.children = max(l.children, a.Children)
			if a.State == state.Failed {
				l.failures++
			}
			if l.key.IsZero() || k.Compare(l.key) > 0 {
				l.key, l.attempt = k, a
			}
		}
	}
	return out
}

func summariseStep(s *Step, x *state.Execution, run *Run, i int, lasts []last, now time.Time) {
	w, name := x.Workflows[run.Name], layout.Name(run.Plan.Steps[i].Name)
	l := &lasts[i]
	*s = Step{Status: l.rec.Status, Since: openSince(w, run.Plan, i, lasts), Attempts: len(l.rec.Attempts), Children: l.children, Failures: l.failures,
		Blocked: x.Blocked(run.Name, run.Plan, i, now)}
	if s.Status == state.Waiting && w.Active() {
		s.Skip = x.Unneeded(run.Name, run.Plan, i)
		s.Again = x.LetAgain(run.Name, name)
	}
	if t := run.Plan.Steps[i].Threshold; t != nil && t.Count > 0 {
		s.Ends = ends(x, run.Name, name, l.rec)
	}
	s.ungated, s.ownSkip = s.Blocked, s.Skip
	if l.key.IsZero() {
		return
	}
	a := &l.attempt
	if len(l.rec.Attempts) > 1 || a.State != s.Status && !a.Ended.IsZero() { // else the fields say it all
		s.Tried = tried(x, run.Name, name, s.Since, l.rec)
	}
	s.Current = l.key
	s.Message, s.Kind, s.Runner = a.Message, a.Kind, a.Runner
	s.Waited, s.Ran = times(s.Since, a)
	s.Since = a.Ended
	if a.State == state.InProgress {
		s.Since = a.Claimed
	}
}

// times are how long an attempt waited, from when its step could start, and ran.
func times(open time.Time, a *state.Attempt) (waited, ran time.Duration) {
	if a.By != "" { // a person's act has one time alone
		return max(0, a.Ended.Sub(open)).Truncate(time.Millisecond), 0
	}
	waited = max(0, a.Claimed.Sub(open)).Truncate(time.Millisecond)
	from := a.Started
	if from.IsZero() {
		from = a.Claimed
	}
	if !a.Ended.IsZero() && !from.IsZero() {
		ran = max(0, a.Ended.Sub(from)).Truncate(time.Millisecond)
	}
	return waited, ran
}

// openSince is when the last of the prerequisites of a step ended.
func openSince(w *state.Workflow, plan *state.Definition, i int, lasts []last) time.Time {
	since := w.Created
	for _, p := range plan.Prerequisites(i) {
		if l := &lasts[p]; !l.key.IsZero() && l.attempt.Ended.After(since) {
			since = l.attempt.Ended
		}
	}
	return since
}

// BlockedAt says why step i of run r cannot be claimed at now; nil: it is ready.
// This, with what Summarise and the overlays of batches and controls put into
// Blocked, is the definition of ready for a single item; Index.Take adds the limits.
func (it *Item) BlockedAt(r *Run, i int, now time.Time) *state.Reason {
	s := &r.Steps[i]
	switch {
	case it.Broken != "":
		return &state.Reason{Code: "record", Text: it.Broken}
	case it.Held && s.Status == state.Waiting && (s.Blocked == nil || s.Blocked.Code != "held"):
		return &state.Reason{Code: "held", Text: "is held " + it.HeldBy}
	case s.Blocked == nil || s.Blocked.Until.IsZero() || now.Before(s.Blocked.Until):
		return s.Blocked
	case asksPerson(r.Plan, i) && s.Skip == "":
		return state.ManualReason()
	}
	return nil
}

// asksPerson tells whether a step is done by a person.
func asksPerson(plan *state.Definition, i int) bool { return plan.Steps[i].Manual }

// Waits tells whether step i of run r waits for a person alone: to do it, or as the
// date that it waits for is none, so that nothing else will let it go on.
func (it *Item) Waits(r *Run, i int) bool {
	why := r.Steps[i].Blocked
	return it.Broken == "" && why != nil && (why.Code == "manual" || why.Code == "date" && why.Until.IsZero())
}

// Traits tells what is to be known of the item at a glance.
func (it *Item) Traits() (t Trait) {
	set := func(bit Trait, is bool) {
		if is {
			t |= bit
		}
	}
	set(Held, it.Held)
	set(Broken, it.Broken != "")
	set(Removed, it.Gone)
	set(Kin, it.Parent != nil)
	for r := range it.Runs {
		run := &it.Runs[r]
		set(Failed, run.Status == state.Failed)
		set(Open, run.Status != state.Completed && run.Status != state.Inactive)
		for i := range run.Steps {
			s := &run.Steps[i]
			set(Failed, s.Status == state.Failed)
			set(Running, s.Status == state.InProgress)
			set(Person, it.Waits(run, i))
			set(Ending, len(s.Ends) > 0)
			set(Gathered, it.Batch != "" && run.Plan.Steps[i].OnBatchComplete)
			set(Off, s.control != nil)
			set(Kin, s.Children > 0)
			set(Startable, s.control != nil || s.Status == state.Waiting && (s.Blocked == nil || !s.Blocked.Until.IsZero()))
		}
	}
	return t
}
