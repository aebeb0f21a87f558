package schedule

import "time"

// agenda is when schedules are to be looked at again. Most looks end at the soonest of them: of
// thousands none is due.
type agenda struct {
	next    map[string]time.Time // by schedule; none: at once
	soonest time.Time            // of next, while nothing changes; zero: not known
	seen    time.Time            // what the clock showed last
}

func newAgenda() agenda { return agenda{next: map[string]time.Time{}} }

// putBack is by how much a clock that goes back makes what was planned void: nothing waits longer by it.
const putBack = time.Second

// see notes what the clock shows. Where it was put back all is looked at anew, as what was planned
// by it is further away now.
func (a *agenda) see(now time.Time) {
	if now.Add(putBack).Before(a.seen) {
		*a = newAgenda()
	}
	a.seen = now
}

// again has a schedule looked at with the next look.
func (a *agenda) again(name string) {
	delete(a.next, name)
	a.soonest = time.Time{}
}

// plan has a schedule looked at next at a time.
func (a *agenda) plan(name string, at time.Time) {
	a.next[name] = at
	a.soonest = time.Time{}
}

// ripe reports whether a schedule is to be looked at.
func (a *agenda) ripe(name string, now time.Time) bool {
	at, known := a.next[name]
	return !known || !now.Before(at)
}

// idle reports whether none is.
func (a *agenda) idle(now time.Time) bool { return now.Before(a.soonest) }

// rest notes that each was asked, and none is to be looked at.
func (a *agenda) rest() {
	for _, at := range a.next {
		if a.soonest.IsZero() || at.Before(a.soonest) {
			a.soonest = at
		}
	}
}
