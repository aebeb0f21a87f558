package state

import (
	"maps"
	"slices"
	"strings"

	"bagpipe/layout"
)

// clone is deep as far as mending goes: maps of steps and of attempts.
func (w *Workflow) clone() *Workflow {
	out := *w
	out.Steps = make(map[layout.Name]*StepRecord, len(w.Steps))
	for n, s := range w.Steps {
		out.Steps[n] = &StepRecord{Attempts: maps.Clone(s.Attempts), unknown: s.unknown}
	}
	return &out
}

func (m *mender) steps(workflow string, a, b *Workflow) map[layout.Name]*StepRecord {
	out := b.clone().Steps
	for _, name := range slices.Sorted(maps.Keys(a.Steps)) {
		s := out[name]
		if s == nil {
			s = &StepRecord{unknown: a.Steps[name].unknown}
			out[name] = s
		}
		m.attempts(workflow+"/"+string(name), a.Steps[name], s)
	}
	return out
}

// attempts puts back into s what was there before.
func (m *mender) attempts(step string, before, s *StepRecord) {
	for _, k := range before.Keys() {
		a := before.Attempts[k]
		b, there := s.Attempts[k]
		switch {
		case !there && a.open() && s.hasHigher(k):
			continue // its engine went on
		case !there:
			m.breach("removed attempt %s (%s) of %s", k, a.State, step)
		case !follows(a, b):
			m.breach("changed attempt %s (%s) of %s", k, a.State, step)
		default:
			continue
		}
		s.put(k, a)
	}
}

// open tells of an attempt that its engine may yet drop.
func (a Attempt) open() bool { return a.State == Deferred || a.State == InProgress }

func (s *StepRecord) hasHigher(k layout.AttemptKey) bool {
	for other := range s.Attempts {
		if other.Engine == k.Engine && other.N > k.N {
			return true
		}
	}
	return false
}

// follows reports whether b is a, or how far a came since, or how a ended.
func follows(a, b Attempt) bool {
	if a.State == InProgress && b.State == InProgress && b.Progress != nil && (a.Progress == nil || !b.Progress.At.Before(a.Progress.At)) {
		a.Progress = b.Progress
	}
	if a.State == InProgress && b.State != InProgress {
		return a.Claimed.Equal(b.Claimed) && a.Runner == b.Runner && a.By == b.By
	}
	return string(a.encode(nil)) == string(b.encode(nil))
}

// leaveOut removes the new attempts that could not have been made. One that goes
// may open the prerequisites of others.
func (m *mender) leaveOut(workflow string) {
	w := m.out.Workflows[workflow]
	defs := m.definitions(workflow)
	if len(defs) == 0 {
		return // nothing is known of its steps
	}
	for again := true; again; {
		again = false
		for _, name := range slices.Sorted(maps.Keys(w.Steps)) {
			why := w.impossible(name, defs)
			again = m.dropNew(workflow, name, func(k layout.AttemptKey) string {
				if k.N >= layout.MaxAttempt {
					return "whose number is too high"
				}
				return why
			}) || again
			if why == noSuchStep && len(w.Steps[name].Attempts) == 0 {
				delete(w.Steps, name)
			}
		}
	}
}

// definitions lists what a workflow runs by, and ran by before it was moved.
func (m *mender) definitions(workflow string) (defs []*Definition) {
	w := m.out.Workflows[workflow]
	digests := []string{w.Digest, w.StartedWith}
	for _, k := range slices.Sorted(maps.Keys(m.out.Intents)) {
		if i := m.out.Intents[k]; i.Kind == MigrateIntent && i.Workflow == workflow {
			digests = append(digests, i.Digest)
		}
	}
	for n, digest := range digests {
		if d := m.plans(digest); d != nil && !slices.Contains(digests[:n], digest) {
			defs = append(defs, d)
		}
	}
	return defs
}

const noSuchStep = "which is not in the definition"

// impossible says why no attempt at a step can have been made by any of the
// definitions; "" when by one it can.
func (w *Workflow) impossible(step layout.Name, defs []*Definition) string {
	why := noSuchStep
	for _, d := range defs {
		i := d.index(string(step))
		if i < 0 {
			continue
		}
		open := w.neverDone(d, i)
		if len(open) == 0 {
			return ""
		}
		if why == noSuchStep {
			why = "which waits for " + strings.Join(open, ", ")
		}
	}
	return why
}

// neverDone lists the prerequisites of step i that must be done for it and that
// no attempt ever completed or skipped.
func (w *Workflow) neverDone(d *Definition, i int) (open []string) {
	for _, p := range d.Prerequisites(i) {
		if s := w.Steps[layout.Name(d.Steps[p].Name)]; !d.Steps[p].Tolerated() && !s.everDone() {
			open = append(open, d.Steps[p].Name)
		}
	}
	return open
}

func (s *StepRecord) everDone() bool {
	if s == nil {
		return false
	}
	for _, a := range s.Attempts {
		if a.State == Completed || a.State == Skipped {
			return true
		}
	}
	return false
}

// dropNew removes those attempts at a step that before has not and why objects to.
func (m *mender) dropNew(workflow string, step layout.Name, why func(layout.AttemptKey) string) (did bool) {
	_, s := m.out.Find(workflow, step)
	if s == nil {
		return false
	}
	_, was := m.before.Find(workflow, step)
	for _, k := range s.Keys() {
		if was != nil {
			if _, old := was.Attempts[k]; old {
				continue
			}
		}
		if text := why(k); text != "" {
			m.breach("added attempt %s (%s) of %s/%s, %s", k, s.Attempts[k].State, workflow, step, text)
			delete(s.Attempts, k)
			did = true
		}
	}
	return did
}
