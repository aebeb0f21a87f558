package packed

import (
	"time"

	"bagpipe/engine/state"
)

// Settle is what has become of an item's dates by now, as it would be summarised. A
// step that a control keeps stays so: its claim asks the control again.
func (it *Item) Settle(now time.Time) {
	for run, i := range it.Steps() {
		s := &run.Steps[i]
		for _, why := range []**state.Reason{&s.Blocked, &s.own.but, &s.own.blocked} {
			if w := *why; w == nil || why == &s.Blocked && s.own.control != nil || w.Until.IsZero() || now.Before(w.Until) {
				continue
			}
			if *why = nil; asksPerson(run.Plan, i) && s.Skip == "" {
				*why = state.ManualReason()
			}
		}
	}
}

// Latest is the item's run of a workflow with the highest number.
func (it *Item) Latest(workflow string) (name string) {
	last := -1
	for r := range it.Runs {
		if base, n := state.Instance(it.Runs[r].Name); base == workflow && n > last {
			name, last = it.Runs[r].Name, n
		}
	}
	return name
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

// asksPerson reports whether a step is done by a person.
func asksPerson(plan *state.Definition, i int) bool { return plan.Steps[i].Manual }

// Waits reports whether step i of run r waits for a person alone: to do it, or as the
// date that it waits for is none, so that nothing else will let it go on.
func (it *Item) Waits(r *Run, i int) bool {
	why := r.Steps[i].Blocked
	return it.Broken == "" && why != nil && (why.Code == "manual" || why.Code == "date" && why.Until.IsZero())
}

// Flies reports whether a run of the item is in flight, as glance.flies does.
func (it *Item) Flies(run *Run) bool { return it.Begun(run) && !it.letAgain(run) }

// letAgain reports whether a person let a step of a run be tried again, or let the item
// go, and nothing was done since: it stands behind the limits again.
func (it *Item) letAgain(run *Run) (is bool) {
	for i := range run.Steps {
		if run.Steps[i].Status == state.InProgress {
			return false
		}
		is = is || run.Steps[i].Again
	}
	return is
}

// Begun reports whether a run is at work, or was and does not wait for what may take
// long.
func (it *Item) Begun(run *Run) bool {
	if it.Broken != "" || it.Held || run.Status != state.InProgress {
		return false
	}
	begun, waits := false, false
	for i := range run.Steps {
		s := &run.Steps[i]
		if s.Status == state.InProgress {
			return true
		}
		waits = waits || it.waitsLong(run, i)
		begun = begun || i > 0 && s.Attempts > 0
	}
	return begun && !waits
}

// waitsLong reports whether a step waits for a person, a date, or other items.
func (it *Item) waitsLong(run *Run, i int) bool {
	s := &run.Steps[i]
	return it.Waits(run, i) || s.barredBy(ChildrenCode) || s.barredBy(BatchCode) || s.Blocked != nil && codeOf(it, run, i, s.Blocked) == codeForeign ||
		s.Blocked != nil && s.Blocked.Code == "date" && codeOf(it, run, i, s.Blocked) == CodeDate
}
