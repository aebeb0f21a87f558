package state

import (
	"slices"

	"bagpipe/layout"
)

// happen reports whether the rules allow an event, and makes it happen to the
// model when they do. needed is what the conditions on the manifest say.
func (m *model) happen(ev Event, plan *Definition, needed func(*Step) bool) bool {
	switch ev := ev.(type) {
	case Start:
		return m.start(ev, plan)
	case Hold:
		if m.held() {
			return false
		}
		m.holds[ev.Key] = false
		return true
	case Release:
		was := m.held()
		for k := range m.holds {
			m.holds[k] = true
		}
		return was
	case Deactivate:
		f := m.flows[ev.Workflow]
		if st := f.status(); st == Completed || st == Inactive {
			return false
		}
		f.stops[ev.Key] = mStop{}
		return true
	case Activate:
		f := m.flows[ev.Workflow]
		was := f.stopped(true) || f.stopped(false)
		for k, s := range f.stops {
			f.stops[k] = mStop{s.internal, true}
		}
		return was
	case Migrate:
		return m.migrate(ev)
	}
	return m.happenToStep(ev, needed)
}

func (m *model) start(ev Start, plan *Definition) bool {
	base, _ := Instance(ev.Workflow)
	for name, f := range m.flows {
		if b, _ := Instance(name); b == base && (name == ev.Workflow || f.underWay() || f.status() == Failed) {
			return false
		}
	}
	f := newFlow(plan, ev.At, ev.NotBefore)
	m.flows[ev.Workflow] = f
	f.step("register").attempts[ev.Attempt] = mAttempt{state: Completed}
	m.renew(m.since)
	return true
}

func (m *model) happenToStep(ev Event, needed func(*Step) bool) bool {
	switch ev := ev.(type) {
	case Cancel:
		f, _ := m.at(ev.Workflow, ev.Step)
		s := f.step(ev.Step)
		if s.status() != InProgress || s.cancelled[s.last()] {
			return false
		}
		s.cancelled[s.last()] = true
		return true
	case Claim:
		f, i := m.at(ev.Workflow, ev.Step)
		if i < 0 || !m.startable(f, i, ev.At) || f.def.Steps[i].Manual || !needed(&f.def.Steps[i]) || f.unchosen(i) {
			return false
		}
		s := f.step(ev.Step)
		for k, a := range s.attempts {
			first := f.notBefore.After(f.created) && a.begun.Equal(f.begun())
			if a.state == Deferred && k.Engine == ev.Attempt.Engine && !first {
				delete(s.attempts, k)
			}
		}
		s.attempts[ev.Attempt] = mAttempt{state: InProgress, begun: ev.At}
		return true
	case Unneeded:
		f, i := m.at(ev.Workflow, ev.Step)
		if i < 0 || !m.startable(f, i, ev.At) || needed(&f.def.Steps[i]) && !f.unchosen(i) {
			return false
		}
		f.step(ev.Step).attempts[ev.Attempt] = mAttempt{state: Skipped, begun: ev.At}
		return true
	case End:
		f, i := m.at(ev.Workflow, ev.Step)
		s := f.step(ev.Step)
		if !s.running(ev.Attempt) {
			return false
		}
		a := mAttempt{ev.State, ev.RetryAt, ev.Children, ev.Chosen, ev.Content, s.attempts[ev.Attempt].begun}
		if ev.Unavailable && i >= 0 && f.def.Steps[i].Optional {
			a = mAttempt{state: Skipped, children: ev.Children, chosen: ev.Chosen, content: ev.Content, begun: a.begun}
		}
		s.attempts[ev.Attempt] = a
		return true
	case Lost:
		f, _ := m.at(ev.Workflow, ev.Step)
		s := f.step(ev.Step)
		if !s.running(ev.Attempt) {
			return false
		}
		s.lost[ev.Attempt] = true
		return true
	case Internal:
		if !m.happenToStep(Lost{Workflow: ev.Workflow, Step: ev.Step, Attempt: ev.Attempt}, needed) {
			return false
		}
		m.flows[ev.Workflow].stops[ev.Key] = mStop{internal: true}
		return true
	case Decide:
		f, i := m.at(ev.Workflow, ev.Step)
		s := f.step(ev.Step)
		if st := s.status(); i < 0 || st != Waiting && st != Failed || f.status() == Inactive || !m.open(f, i) {
			return false
		}
		s.attempts[ev.Attempt] = mAttempt{state: ev.State, begun: ev.At}
		return true
	case Retry:
		f, _ := m.at(ev.Workflow, ev.Step)
		s := f.step(ev.Step)
		if s.status() != Failed && !s.pending() {
			return false
		}
		s.floor = s.last()
		return true
	case Reset:
		return m.reset(ev)
	}
	return false
}

func (m *model) at(workflow string, step layout.Name) (*mFlow, int) {
	f := m.flows[workflow]
	return f, slices.IndexFunc(f.def.Steps, func(s Step) bool { return s.Name == string(step) })
}

func (m *model) reset(ev Reset) bool {
	f, i := m.at(ev.Workflow, ev.Step)
	s := f.step(ev.Step)
	st := s.status()
	if i <= 0 || ev.Seen != "" && ev.Seen != st || st == InProgress || st == Waiting && !s.pending() && !s.abandoned() {
		return false
	}
	steps := []layout.Name{ev.Step}
	for again := ev.After; again; {
		again = false
		for j, t := range f.def.Steps {
			needs := j > 0 && t.Requires == nil && slices.Contains(steps, layout.Name(f.def.Steps[max(j-1, 0)].Name)) ||
				t.Requires != nil && slices.ContainsFunc(*t.Requires, func(r string) bool { return slices.Contains(steps, layout.Name(r)) })
			if needs && !slices.Contains(steps, layout.Name(t.Name)) {
				steps, again = append(steps, layout.Name(t.Name)), true
			}
		}
	}
	for _, name := range steps {
		if f.step(name).status() == InProgress {
			return false
		}
	}
	for n, name := range steps {
		f.step(name).takeBack(n > 0)
	}
	return true
}

func (s *mStep) abandoned() bool {
	last := s.last()
	return s.status() == Waiting && s.lost[last] && last.Compare(s.floor) > 0
}

// takeBack resets the step; after: one that needs another which is done anew, so that
// also what an attempt made whose engine is gone does not count.
func (s *mStep) takeBack(after bool) {
	failed := s.status() == Failed || s.pending() || s.abandoned()
	for k, a := range s.attempts {
		if (a.state == Completed || a.state == Skipped) && !s.reset[k] {
			s.reset[k] = true
			if k.Compare(s.floor) > 0 {
				s.floor = k
			}
		}
	}
	last := s.last()
	if failed && after && s.attempts[last].state == InProgress {
		s.reset[last] = true
	}
	if failed && last.Compare(s.floor) > 0 {
		s.floor = last
	}
}

func (m *model) migrate(ev Migrate) bool {
	f := m.flows[ev.Workflow]
	base, _ := Instance(ev.Workflow)
	if ev.To.Name != base || ev.To.Digest == f.def.Digest || f.status() == Completed {
		return false
	}
	to := &mFlow{def: ev.To, steps: f.steps}
	for name, s := range f.steps {
		i := slices.IndexFunc(ev.To.Steps, func(t Step) bool { return t.Name == string(name) })
		st := s.status()
		if st == InProgress || i < 0 && len(s.attempts) > 0 {
			return false
		}
		if i <= 0 || st != Completed && st != Skipped {
			continue
		}
		needs := []string{ev.To.Steps[i-1].Name}
		if r := ev.To.Steps[i].Requires; r != nil {
			needs = *r
		}
		for _, n := range needs {
			if n[1] != '/' && !to.satisfied(layout.Name(n)) {
				return false
			}
		}
	}
	for k, mv := range f.moves {
		f.moves[k] = mMove{mv.to, true}
	}
	key, _ := ev.Key()
	f.moves[string(key)] = mMove{to: ev.To}
	f.settle()
	return true
}
