package packed

import (
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// EndsOf lists what thresholds look at; see the package comment of state.
func EndsOf(x *state.Execution, run string, step layout.Name) (out []End) {
	rec := x.Workflows[run].Steps[step]
	for _, k := range rec.Keys() {
		a := rec.Attempts[k]
		over := a.State == state.Completed || a.State == state.Skipped || a.State == state.Failed && a.NotBefore.IsZero()
		if _, cancelled := state.Cancelled(x, run, step, k); over && a.By == "" && !cancelled && !x.Lost(run, step, k) {
			out = append(out, End{At: a.Ended, Attempt: k, Failed: a.State == state.Failed})
		}
	}
	return out
}

// SummariseInto reads an item's record, in the memory of an item that nobody needs any
// more. Statuses are computed; plans gives the pinned definition for a digest.
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
		it.Held, it.HeldBy = true, x.HoldText(state.Gravest(x, holds))
	} else if keys, _ := layout.Conflicts(x.Manifest); len(keys) > 0 { // somebody else's program released it
		it.Held, it.HeldBy = true, "until somebody chooses: "+state.HeldByConflict+strings.Join(keys, ", ")
	}
	if in, is := state.Disposal(x); is {
		if it.Milestones == nil {
			it.Milestones = map[layout.Name]time.Time{}
		}
		it.Milestones[state.Disposed] = in.At
		it.Held, it.HeldBy = false, ""
		return it
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
	var room [16]last // a workflow has seldom more steps
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
	cpu      time.Duration
	idle     time.Duration
}

// lastOf looks at the attempts of all steps of a workflow.
func lastOf(out []last, w *state.Workflow, plan *state.Definition) []last {
	out = slices.Grow(out, len(plan.Steps))[:len(plan.Steps)]
	for i := range out {
		l := &out[i]
		*l = last{rec: w.Steps[layout.Name(plan.Steps[i].Name)]}
		for k, a := range l.rec.Attempts {
			l.children = max(l.children, a.Children)
			l.cpu += a.CPU
			l.idle += a.Idle
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
	*s = Step{Status: l.rec.Status, Since: openSince(w, run.Plan, i, lasts), Attempts: len(l.rec.Attempts), Children: l.children, Failures: l.failures, CPU: l.cpu.Truncate(time.Millisecond),
		Idle: l.idle.Truncate(time.Millisecond), Blocked: x.Blocked(run.Name, run.Plan, i, now)}
	if s.Status == state.Waiting && w.Active() {
		s.Skip = x.Unneeded(run.Name, run.Plan, i)
		s.Again = x.LetAgain(run.Name, name)
	}
	if t := run.Plan.Steps[i].Threshold; t != nil && t.Count > 0 {
		s.Ends = EndsOf(x, run.Name, name)
	}
	s.NoteOwn()
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
	if s.Status == state.Waiting {
		s.Since = askedAgain(x, run.Name, name, s.Since, now)
	}
}

// askedAgain is when a person last let a step be tried again, after a time and not after
// another; from where nobody did.
func askedAgain(x *state.Execution, run string, step layout.Name, from, to time.Time) time.Time {
	for _, in := range x.Intents {
		if (in.Kind == state.RetryIntent || in.Kind == state.ResetIntent) && in.Workflow == run && in.Step == step && in.At.After(from) && !in.At.After(to) {
			from = in.At
		}
	}
	return from
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

// tried gives the attempts at a step that ended, in order. open is when the step
// could first start.
func tried(x *state.Execution, run string, step layout.Name, open time.Time, rec *state.StepRecord) (out []Tried) {
	for _, k := range rec.Keys() {
		a := rec.Attempts[k]
		begun := a.Claimed
		if a.By != "" {
			begun = a.Ended
		}
		open = askedAgain(x, run, step, open, begun)
		if a.Ended.IsZero() {
			continue // lost, or at work
		}
		waited, ran := times(open, &a)
		out = append(out, Tried{a.State, a.Ended, waited, ran})
		for _, t := range []time.Time{a.Ended, a.NotBefore} {
			if t.After(open) {
				open = t
			}
		}
	}
	return out
}
