package schedule

import "time"

// agenda is when schedules are to be looked at again. Most looks end at the soonest of them: of
// thousands none is due.
type agenda struct {
	next    map[string]time.Time // by schedule; none: at once
	soonest time.Time            // of next, while nothing changes; zero: not known
}

func newAgenda() agenda { return agenda{next: map[string]time.Time{}} }

// mostAhead is how far ahead a look may be planned; what is further was planned before the clock
// was put back.
const mostAhead = 25 * time.Hour

// again has a schedule looked at with the next look.
func (a *agenda) again(name string) {
	delete(a.next, name)
	a.soonest = time.Time{}
}

// plan has a schedule looked at next at a time, and within a day: a look that is further ahead
// could not be told from one that was planned before the clock was put back.
func (a *agenda) plan(name string, at, now time.Time) {
	if most := now.Add(24 * time.Hour); at.After(most) {
		at = most
	}
	a.next[name] = at
	a.soonest = time.Time{}
}

// ripe reports whether a schedule is to be looked at.
func (a *agenda) ripe(name string, now time.Time) bool {
	at, known := a.next[name]
	return !known || !now.Before(at) || at.Sub(now) > mostAhead
}

// idle reports whether none is.
func (a *agenda) idle(now time.Time) bool {
	return now.Before(a.soonest) && a.soonest.Sub(now) <= mostAhead
}

// rest notes that each was asked, and none is to be looked at.
func (a *agenda) rest() {
	for _, at := range a.next {
		if a.soonest.IsZero() || at.Before(a.soonest) {
			a.soonest = at
		}
	}
}
