package state

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"bagpipe/layout"
)

// Plans gives the definition with a digest; nil when there is none.
type Plans func(digest string) *Definition

// Mend holds now, committed by another writer, against before, from which it was
// made; the package comment has the rules. breaches says in words what was mended,
// in a fixed order; without any, now is given back. Neither argument is changed
// but for its statuses.
func Mend(before, now *Execution, plans Plans) (mended *Execution, breaches []string) {
	m := &mender{before: before, now: now, plans: plans}
	m.out = &Execution{Item: before.Item, Workflows: map[string]*Workflow{}, Since: now.Since, unknown: now.unknown}
	m.out.Intents = keepAll(m, before.Intents, now.Intents, intentText,
		func(a, b Intent) bool { return string(a.encode(nil)) == string(b.encode(nil)) })
	m.moves()
	m.workflows()
	m.retries()
	m.milestones()
	if len(m.breaches) == 0 {
		return now, nil
	}
	m.out.Recompute(plans)
	return m.out, m.breaches
}

type mender struct {
	before, now, out *Execution
	plans            Plans
	breaches         []string
}

func (m *mender) breach(format string, args ...any) {
	m.breaches = append(m.breaches, fmt.Sprintf(format, args...))
}

// keepAll is now with all of before in it, unaltered.
func keepAll[K ~string, V any](m *mender, before, now map[K]V, text func(K, V) string, same func(a, b V) bool) map[K]V {
	out := maps.Clone(now)
	if out == nil {
		out = map[K]V{}
	}
	for _, k := range slices.Sorted(maps.Keys(before)) {
		v, there := now[k]
		switch {
		case !there:
			m.breach("removed %s", text(k, before[k]))
		case !same(before[k], v):
			m.breach("changed %s", text(k, before[k]))
		default:
			continue
		}
		out[k] = before[k]
	}
	return out
}

func intentText(_ layout.IntentKey, i Intent) string {
	return fmt.Sprintf("the %s of %s by %s", i.Kind, layout.FormatTime(i.At), i.By)
}

func (m *mender) workflows() {
	for _, name := range slices.Sorted(maps.Keys(m.before.Workflows)) {
		a, b := m.before.Workflows[name], m.now.Workflows[name]
		if b == nil {
			m.breach("removed workflow %s", name)
			m.out.Workflows[name] = a.clone()
			continue
		}
		if startedApart(a, b) && m.plans(b.StartedWith) != nil {
			a = &Workflow{Name: b.Name, StartedWith: b.StartedWith, StartedBy: b.StartedBy, Created: b.Created, NotBefore: b.NotBefore,
				Skip: unite(a.Skip, b.Skip, greater), Steps: a.Steps}
		}
		out := &Workflow{Name: a.Name, StartedWith: a.StartedWith, StartedBy: a.StartedBy, Created: a.Created, NotBefore: a.NotBefore, Skip: b.Skip,
			unknown: b.unknown, unknownOfDefinition: b.unknownOfDefinition}
		skips := m.skips(name, a, b)
		if !skips {
			out.Skip = a.Skip
		}
		if a.head() != b.head() || !skips {
			m.breach("changed the definition, the date or the steps not needed of workflow %s", name)
		}
		out.Steps = m.steps(name, a, b)
		m.out.Workflows[name] = out
	}
	for _, name := range slices.Sorted(maps.Keys(m.now.Workflows)) {
		b := m.now.Workflows[name]
		switch {
		case m.before.Workflows[name] != nil:
		case m.plans(b.StartedWith) == nil:
			m.breach("added workflow %s, whose definition is not to be found", name)
		case !isRun(name, b, m.plans(b.StartedWith)):
			m.breach("added workflow %s, whose definition is that of %s", name, m.plans(b.StartedWith).Name)
		default:
			m.out.Workflows[name] = b.clone()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.out.Workflows)) {
		m.out.settleDigest(name)
		m.leaveOut(name)
	}
}

// isRun reports whether a workflow is named for its definition.
func isRun(name string, w *Workflow, d *Definition) bool {
	base, number := Instance(name)
	return number > 0 && base == w.Name && base == d.Name
}

// moves leaves out the new migrations to what no item can run by.
func (m *mender) moves() {
	for _, k := range slices.Sorted(maps.Keys(m.out.Intents)) {
		i := m.out.Intents[k]
		if _, old := m.before.Intents[k]; old || i.Kind != MigrateIntent {
			continue
		}
		base, _ := Instance(i.Workflow)
		if d := m.plans(i.Digest); d == nil || d.Name != base {
			m.breach("added %s, to a definition that is not to be found", intentText(k, i))
			delete(m.out.Intents, k)
		}
	}
}

// startedApart reports whether b's head is that of another start of the same run,
// which the join put before a's: the attempt that started it came with it.
func startedApart(a, b *Workflow) bool {
	if a.Name != b.Name || b.head() <= a.head() {
		return false
	}
	for step, s := range b.Steps {
		for k, at := range s.Attempts {
			old := a.Steps[step]
			if at.State != Completed || !at.Ended.Equal(b.Created) || !at.Started.Equal(b.Created) {
				continue
			}
			if old == nil {
				return true
			}
			if _, there := old.Attempts[k]; !there {
				return true
			}
		}
	}
	return false
}

// skips reports whether the steps that are not needed are as before, or more by a
// migration.
func (m *mender) skips(workflow string, a, b *Workflow) bool {
	for step, why := range a.Skip {
		if got, there := b.Skip[step]; !there || got != why {
			return false
		}
	}
	if len(a.Skip) == len(b.Skip) {
		return true
	}
	for k, i := range m.out.Intents {
		if _, old := m.before.Intents[k]; !old && i.Kind == MigrateIntent && i.Workflow == workflow {
			return true
		}
	}
	return false
}

// retries leaves out the new ones that name an attempt no one can have seen: no
// attempt after it would ever count.
func (m *mender) retries() {
	for _, k := range slices.Sorted(maps.Keys(m.out.Intents)) {
		i := m.out.Intents[k]
		if _, old := m.before.Intents[k]; old || i.Kind != RetryIntent && i.Kind != ResetIntent {
			continue
		}
		_, s := m.out.Find(i.Workflow, i.Step)
		var last layout.AttemptKey
		if s != nil {
			last, _, _ = s.Current()
		}
		if i.Attempt.N > last.N {
			m.breach("added %s of attempt %s of %s/%s, which is not there", intentText(k, i), i.Attempt, i.Workflow, i.Step)
			delete(m.out.Intents, k)
		}
	}
}

func (m *mender) milestones() {
	m.out.Milestones = keepAll(m, m.before.Milestones, m.now.Milestones,
		func(n layout.Name, _ time.Time) string { return "the milestone " + string(n) },
		func(was, is time.Time) bool { return !is.After(was) })
	for _, n := range slices.Sorted(maps.Keys(m.out.Milestones)) {
		at := m.out.Milestones[n]
		was, there := m.before.Milestones[n]
		if there && was.Equal(at) || m.out.endedAt(at) {
			continue
		}
		if in, is := Disposal(m.out); n == Disposed && is && in.At.Equal(at) {
			continue
		}
		if there {
			m.breach("changed the milestone %s", n)
			m.out.Milestones[n] = was
			continue
		}
		m.breach("added the milestone %s, which no step reached at that time", n)
		delete(m.out.Milestones, n)
	}
}

func (x *Execution) endedAt(at time.Time) bool {
	stamp := layout.FormatTime(at)
	return x.any(func(_ string, _ layout.Name, _ layout.AttemptKey, a Attempt) bool {
		return !a.open() && layout.FormatTime(a.Ended) == stamp
	})
}
