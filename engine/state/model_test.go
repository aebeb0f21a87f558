package state

import (
	"maps"
	"slices"
	"time"

	"bagpipe/layout"
)

// model is the reference: what happened, as plain sets, and the statuses read off
// them by the rules of the package comment, without the record, its intents or
// its codec. Two models are joined by uniting the sets.
type model struct {
	flows map[string]*mFlow
	holds map[layout.IntentKey]bool // true: released

	since  time.Time    // when the item came to be at its version: what is older is over
	bare   bool         // nothing was dropped yet
	barred map[Ref]bool // by other items, as children do their parent: no part of what is joined
}

type mFlow struct {
	def       *Definition
	moves     map[string]mMove
	created   time.Time
	notBefore time.Time
	over      bool // with the version of the item that it worked on
	steps     map[layout.Name]*mStep
	stops     map[layout.IntentKey]mStop
}

// mMove is a migration; over when another was made in its knowledge.
type mMove struct {
	to   *Definition
	over bool
}

type mStop struct{ internal, over bool }

type mStep struct {
	attempts    map[layout.AttemptKey]mAttempt
	lost, reset map[layout.AttemptKey]bool
	cancelled   map[layout.AttemptKey]bool
	floor       layout.AttemptKey
}

type mAttempt struct {
	state    Status
	again    time.Time // when it is tried again
	children int
	chosen   []layout.Name // nil: nothing was said
	content  bool          // it fetched the item's
	begun    time.Time
}

func newModel() *model {
	return &model{flows: map[string]*mFlow{}, holds: map[layout.IntentKey]bool{}, barred: map[Ref]bool{}}
}

func (m *model) clone() *model {
	c := newModel()
	c.unite(m)
	c.barred = maps.Clone(m.barred)
	c.renew(m.since)
	c.bare = m.bare
	return c
}

// renew makes the item another version.
func (m *model) renew(since time.Time) {
	m.since = since
	for _, f := range m.flows {
		f.over = f.created.Before(since)
	}
}

// unite takes in all that o knows.
func (m *model) unite(o *model) {
	for k, over := range o.holds {
		m.holds[k] = m.holds[k] || over
	}
	for name, of := range o.flows {
		f := m.flows[name]
		if f == nil {
			f = newFlow(of.def, of.created, of.notBefore)
			m.flows[name] = f
		}
		// Two may have started it apart: then the later start counts.
		if c := of.created.Compare(f.created); c > 0 || c == 0 && of.notBefore.After(f.notBefore) {
			f.created, f.notBefore = of.created, of.notBefore
		}
		for k, mv := range of.moves {
			f.moves[k] = mMove{mv.to, mv.over || f.moves[k].over}
		}
		f.settle()
		for k, s := range of.stops {
			f.stops[k] = mStop{s.internal, s.over || f.stops[k].over}
		}
		for step, os := range of.steps {
			s := f.step(step)
			for k, a := range os.attempts {
				if was, there := s.attempts[k]; !there || was.state == InProgress {
					s.attempts[k] = a
				}
			}
			maps.Copy(s.lost, os.lost)
			maps.Copy(s.cancelled, os.cancelled)
			maps.Copy(s.reset, os.reset)
			if os.floor.Compare(s.floor) > 0 {
				s.floor = os.floor
			}
		}
	}
	m.renew(later(m.since, o.since))
}

func newFlow(def *Definition, created, notBefore time.Time) *mFlow {
	return &mFlow{def: def, created: created, notBefore: notBefore,
		moves: map[string]mMove{}, steps: map[layout.Name]*mStep{}, stops: map[layout.IntentKey]mStop{}}
}

// settle finds the definition after the last move.
func (f *mFlow) settle() {
	last := ""
	for k, mv := range f.moves {
		if !mv.over && k > last {
			f.def, last = mv.to, k
		}
	}
}

func (f *mFlow) step(name layout.Name) *mStep {
	s := f.steps[name]
	if s == nil {
		s = &mStep{attempts: map[layout.AttemptKey]mAttempt{}, lost: map[layout.AttemptKey]bool{}, reset: map[layout.AttemptKey]bool{}, cancelled: map[layout.AttemptKey]bool{}}
		f.steps[name] = s
	}
	return s
}

// last is the highest attempt.
func (s *mStep) last() (last layout.AttemptKey) {
	for k := range s.attempts {
		if k.Compare(last) > 0 {
			last = k
		}
	}
	return last
}

func (s *mStep) status() Status {
	done := Waiting
	var last layout.AttemptKey
	for k, a := range s.attempts {
		switch {
		case a.state == Completed && !s.reset[k]:
			return Completed
		case a.state == Skipped && !s.reset[k]:
			done = Skipped
		}
		if a.state != Deferred && !s.lost[k] && k.Compare(s.floor) > 0 && k.Compare(last) > 0 {
			last = k
		}
	}
	if k := s.last(); done != Skipped && s.lost[k] && s.cancelled[k] && k.Compare(s.floor) > 0 {
		return Failed // its engine is gone, and it is not made again
	}
	if done == Skipped || last.IsZero() {
		return done
	}
	if a := s.attempts[last]; a.state == Failed && !a.again.IsZero() {
		return Waiting
	}
	return s.attempts[last].state
}

func tolerates(def *Definition, step layout.Name) bool {
	s := def.Step(step)
	return s != nil && (s.Optional || s.ContinueOnFailure == ContinueAlways)
}

func (f *mFlow) satisfied(step layout.Name) bool {
	switch f.step(step).status() {
	case Completed, Skipped:
		return true
	case Failed:
		return tolerates(f.def, step)
	}
	return false
}

func (f *mFlow) stopped(internal bool) bool {
	for _, s := range f.stops {
		if s.internal == internal && !s.over {
			return true
		}
	}
	return false
}

func (f *mFlow) status() Status {
	open, failed := false, f.stopped(true)
	for _, s := range f.def.Steps {
		name := layout.Name(s.Name)
		if !f.satisfied(name) {
			open = true
			failed = failed || f.step(name).status() == Failed
		}
	}
	switch {
	case !open:
		return Completed
	case f.stopped(false) || f.over:
		return Inactive
	case failed && (f.def.AfterFailure != Independent || f.stopped(true) || !f.goesOn()):
		return Failed
	}
	if f.begun().IsZero() {
		return Scheduled
	}
	return InProgress
}

// begun is when the first attempt was, of those besides the one that is the start; a workflow
// that is not dated for later is begun by that.
func (f *mFlow) begun() (first time.Time) {
	if !f.notBefore.After(f.created) {
		return f.created
	}
	for name, s := range f.steps {
		for _, a := range s.attempts {
			if string(name) != f.def.Steps[0].Name && (first.IsZero() || a.begun.Before(first)) {
				first = a.begun
			}
		}
	}
	return first
}

// underWay reports whether steps of a workflow may start.
func (f *mFlow) underWay() bool {
	st := f.status()
	return st == InProgress || st == Scheduled
}

// goesOn reports whether a step is open that needs none of those that failed.
func (f *mFlow) goesOn() bool {
	doomed := map[string]bool{} // a step stands after those it requires
	for i, s := range f.def.Steps {
		name := layout.Name(s.Name)
		st := f.step(name).status()
		doomed[s.Name] = st == Failed && !f.satisfied(name) || slices.ContainsFunc(f.needs(i), func(n string) bool { return doomed[n] })
		if !doomed[s.Name] && (st == Waiting || st == InProgress) {
			return true
		}
	}
	return false
}

// needs are the steps that a step requires.
func (f *mFlow) needs(i int) []string {
	s := f.def.Steps[i]
	if s.Requires == nil && i > 0 {
		return []string{f.def.Steps[i-1].Name}
	}
	if s.Requires == nil {
		return nil
	}
	return *s.Requires
}

// unchosen reports whether a step before this one chose others.
func (f *mFlow) unchosen(i int) bool {
	return slices.ContainsFunc(f.needs(i), func(n string) bool {
		route := f.def.Step(layout.Name(n))
		if route == nil || !slices.Contains(route.Choose, f.def.Steps[i].Name) {
			return false
		}
		s := f.step(layout.Name(n))
		for k, a := range s.attempts {
			if a.state == Completed && !s.reset[k] && a.chosen != nil && !slices.Contains(a.chosen, layout.Name(f.def.Steps[i].Name)) {
				return true
			}
		}
		return false
	})
}

func (m *model) held() bool {
	for _, over := range m.holds {
		if !over {
			return true
		}
	}
	return false
}

// open reports whether all that a step needs is done.
func (m *model) open(f *mFlow, i int) bool {
	for _, n := range f.needs(i) {
		g := f
		if len(n) > 2 && n[1] == '/' {
			g = m.flows[n[:1]+".2"]
			if g == nil {
				g = m.flows[n[:1]+".1"]
			}
			n = n[2:]
			if g == nil || !slices.ContainsFunc(g.def.Steps, func(s Step) bool { return s.Name == n }) && len(g.step(layout.Name(n)).attempts) == 0 {
				return false
			}
		}
		if !g.satisfied(layout.Name(n)) {
			return false
		}
	}
	return true
}

// startable reports whether a step could start at now, but for a person.
func (m *model) startable(f *mFlow, i int, now time.Time) bool {
	s := f.step(layout.Name(f.def.Steps[i].Name))
	if s.status() != Waiting || m.held() || !f.underWay() || !m.open(f, i) || now.Before(f.notBefore) {
		return false
	}
	if m.bare && f.def.Steps[i].Needs == NeedsContent && !m.fetched() {
		return false
	}
	if m.barred[Ref{f.def.Name, layout.Name(f.def.Steps[i].Name)}] {
		return false
	}
	if d := f.def.Steps[i].NotBefore; d != nil && now.Before(f.created.Add(d.After)) {
		return false
	}
	last := s.last()
	return last.Compare(s.floor) <= 0 || !now.Before(s.attempts[last].again)
}

// fetched reports whether a completed step has brought the item's content.
func (m *model) fetched() bool {
	for _, f := range m.flows {
		for _, s := range f.steps {
			for k, a := range s.attempts {
				if a.content && a.state == Completed && !s.reset[k] {
					return true
				}
			}
		}
	}
	return false
}

// running reports whether an attempt is the one in progress.
func (s *mStep) running(k layout.AttemptKey) bool {
	return !k.IsZero() && s.last() == k && s.attempts[k].state == InProgress && !s.lost[k]
}

// again reports whether a step waits for its next try.
func (s *mStep) pending() bool {
	last := s.last()
	return s.status() == Waiting && last.Compare(s.floor) > 0 && !s.attempts[last].again.IsZero()
}
