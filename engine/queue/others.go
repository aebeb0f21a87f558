package queue

import "bagpipe/engine/state"

// What other items make of an item's step: the codes of its reason.
const (
	batchCode    = "batch"
	childrenCode = "children" // a parent's
	siblingsCode = "siblings" // a child's
	poolCode     = "pool"
)

// byOthers tells whether a reason follows from other items.
func byOthers(why *state.Reason) bool {
	if why == nil {
		return false
	}
	switch why.Code {
	case batchCode, childrenCode, siblingsCode, poolCode:
		return true
	}
	return false
}

// overlay lays what other items say over an item's steps, in the place of what they
// said before.
func (x *Index) overlay(it *Item) {
	if it.Broken != "" || it.Batch == "" && it.Parent == nil && x.families[it.ID] == nil {
		return
	}
	for r := range it.Runs {
		for i := range it.Runs[r].Steps {
			s := &it.Runs[r].Steps[i]
			s.bar(s.ungated)
			s.Skip = s.ownSkip
		}
	}
	x.overlayBatch(it)
	x.overlayFamily(it)
}

// soft tells whether the step waits, and its own item's record would let it start, now
// or at a time, or let a person do it; and nothing bars it yet.
func (s *Step) soft() bool {
	return s.Status == state.Waiting && s.Own() == s.ungated &&
		(s.ungated == nil || s.ungated.Code == "manual" || s.ungated.Code == "date" || s.ungated.Code == "retry")
}

// barredBy tells whether others keep the step from starting, for that reason.
func (s *Step) barredBy(code string) bool {
	why := s.Own()
	return why != nil && why.Code == code
}

// bar says why the step cannot start but for controls. A control's reason goes before
// it, but for what other items say: at the time when a control lets one item be tried,
// it should not be one that those keep waiting.
func (s *Step) bar(why *state.Reason) {
	s.Blocked = why
	if s.control == nil {
		return
	}
	if s.own = why; !byOthers(why) {
		s.Blocked = latest(s.control, why)
	}
}
