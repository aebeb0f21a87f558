package packed

import (
	"bagpipe/engine/state"
)

// Controlled gives the item with what controls say of its steps: off answers with
// why a step that could start otherwise, now or at its time, may not, or with nil.
// What it said before is taken back. The item itself is not changed.
func (it *Item) Controlled(off func(run *Run, i int) *state.Reason) *Item {
	out := it
	for r := range it.Runs {
		run := &it.Runs[r]
		for i := range run.Steps {
			was := run.Steps[i]
			is := was
			is.own.control, is.own.but, is.Blocked = nil, nil, was.Own()
			if is.startable() {
				is.own.control = off(run, i)
				is.Bar(is.Blocked)
			}
			if is.own.control == nil && was.own.control == nil {
				continue
			}
			if out == it {
				out = it.clone()
			}
			out.Runs[r].Steps[i] = is
		}
	}
	return out
}

// Own is why the step cannot start but for controls.
func (s *Step) Own() *state.Reason {
	if s.own.control != nil {
		return s.own.but
	}
	return s.Blocked
}

// Off reports whether a control alone keeps the step from starting.
func (s *Step) Off() bool { return s.own.control != nil && !ByOthers(s.own.but) }

// startable reports whether the step starts by itself, now or at its time, as soon as
// other items let it.
func (s *Step) startable() bool {
	return s.Status == state.Waiting && (s.own.blocked == nil || !s.own.blocked.Until.IsZero())
}

// latest is a control's reason, not before what the step waits for besides.
func latest(why, own *state.Reason) *state.Reason {
	if own == nil || why.Until.IsZero() || !own.Until.After(why.Until) {
		return why
	}
	later := *why
	later.Until = own.Until
	return &later
}

// What other items make of an item's step: the codes of its reason.
const (
	BatchCode    = "batch"
	ChildrenCode = "children" // a parent's
	SiblingsCode = "siblings" // a child's
	PoolCode     = "pool"
)

// ByOthers reports whether a reason follows from other items.
func ByOthers(why *state.Reason) bool {
	if why == nil {
		return false
	}
	switch why.Code {
	case BatchCode, ChildrenCode, SiblingsCode, PoolCode:
		return true
	}
	return false
}

// NoteOwn notes Blocked and Skip as what the item's own record says.
func (s *Step) NoteOwn() { s.own.blocked, s.own.skip = s.Blocked, s.Skip }

// ByRecord is why the item's own record keeps the step from starting; nil: it does not.
func (s *Step) ByRecord() *state.Reason { return s.own.blocked }

// Uncover takes back what other items said of the step.
func (s *Step) Uncover() {
	s.Bar(s.own.blocked)
	s.Skip = s.own.skip
}

// SkipByOthers is why other items make the step unneeded; "": they do not.
func (s *Step) SkipByOthers() string {
	if s.Skip == s.own.skip {
		return ""
	}
	return s.Skip
}

// Soft reports whether the step waits, and its own item's record would let it start, now
// or at a time, or let a person do it; and nothing bars it yet.
func (s *Step) Soft() bool {
	return s.Status == state.Waiting && s.Own() == s.own.blocked &&
		(s.own.blocked == nil || s.own.blocked.Code == "manual" || s.own.blocked.Code == "date" || s.own.blocked.Code == "retry")
}

// barredBy reports whether others keep the step from starting, for that reason.
func (s *Step) barredBy(code string) bool {
	why := s.Own()
	return why != nil && why.Code == code
}

// Bar says why the step cannot start but for controls. A control's reason goes before
// it, but for what other items say: at the time when a control lets one item be tried,
// it should not be one that those keep waiting.
func (s *Step) Bar(why *state.Reason) {
	s.Blocked = why
	if s.own.control == nil {
		return
	}
	if s.own.but = why; !ByOthers(why) {
		s.Blocked = latest(s.own.control, why)
	}
}
