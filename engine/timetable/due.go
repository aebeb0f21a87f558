package timetable

import "time"

// mostSteps bounds the search for a time that a line of cron and the clock allow.
const mostSteps = 1000

// Next is the first time after a moment at which the schedule is due. ended is the end of the
// last firing, from which every: counts; zero: there was none, and it counts from the moment.
func (s *Schedule) Next(after, ended time.Time) (due time.Time, ever bool) {
	r := &s.reckoned
	if before := r.from.Add(-1); after.Before(before) {
		after = before
	}
	switch {
	case r.cron != nil:
		due, ever = r.nextCron(after)
	case r.every > 0:
		if ended.IsZero() {
			ended = after
		}
		due, ever = ended.Add(r.every), true
		if r.months > 0 {
			due = monthsAfter(ended.In(r.zone), r.months)
		}
		if due.Before(r.from) {
			due = r.from
		}
		due = s.opening(due)
	case s.Trigger.Queue != "": // of what is ready no time tells
		return time.Time{}, false
	default:
		due, ever = r.at, r.at.After(after)
	}
	if ever && !r.until.IsZero() && !due.Before(r.until) {
		return time.Time{}, false
	}
	return due.UTC(), ever
}

// monthsAfter is the same day and time some months later, or the last day of a month that is
// shorter.
func monthsAfter(t time.Time, n int) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(n), 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
	return first.AddDate(0, 0, min(t.Day(), first.AddDate(0, 1, -1).Day())-1)
}

// Open reports whether a moment is between from and until, and between the times of the day.
func (s *Schedule) Open(t time.Time) bool {
	r := &s.reckoned
	return !t.Before(r.from) && (r.until.IsZero() || t.Before(r.until)) && r.hours.Has(t)
}

// opening is a moment, or the next at which the day's times begin.
func (s *Schedule) opening(t time.Time) time.Time {
	r := &s.reckoned
	if r.hours.Has(t) {
		return t
	}
	wall := asUTC(t.In(r.zone)).Truncate(24 * time.Hour).Add(r.hours.opens)
	for {
		if first, _ := r.shown(wall); !first.Before(t) {
			return first
		}
		wall = wall.Add(24 * time.Hour)
	}
}

// nextCron goes through the wall's times, told as if they were UTC, and asks the zone when
// the clock shows them.
func (r *reckoned) nextCron(after time.Time) (time.Time, bool) {
	wall := asUTC(after.In(r.zone)).Add(-25 * time.Hour) // further back than a clock is ever put
	var again time.Time                                  // of a time before that is shown twice: others are first shown before it
	for range mostSteps * 60 {
		if wall = r.cron.Next(wall); wall.IsZero() {
			break
		}
		first, second := r.shown(wall)
		if first.After(after) {
			if !again.IsZero() && again.Before(first) {
				return again, true
			}
			return first, true
		}
		if r.hourly && again.IsZero() && second.After(after) {
			again = second
		}
	}
	return again, !again.IsZero()
}

// shown are the moments at which the zone's clock shows a time: the second differs from the
// first where the clock is put back over it. A time that is left out is shown when the clock
// is put forward.
func (r *reckoned) shown(wall time.Time) (first, second time.Time) {
	var at [2]time.Time
	for i, near := range []time.Time{wall.Add(-26 * time.Hour), wall.Add(26 * time.Hour)} {
		_, offset := near.In(r.zone).Zone()
		at[i] = wall.Add(-time.Duration(offset) * time.Second)
	}
	before, after := at[0], at[1]
	isBefore, isAfter := asUTC(before.In(r.zone)).Equal(wall), asUTC(after.In(r.zone)).Equal(wall)
	switch {
	case isBefore && isAfter && before.Before(after):
		return before, after
	case isBefore && isAfter:
		return after, before
	case isBefore:
		return before, before
	case isAfter:
		return after, after
	}
	// Neither: the clock jumps over it, between the two.
	low, high := after, before
	if high.Before(low) {
		low, high = high, low
	}
	low, high = low.Add(-time.Hour), high.Add(time.Hour)
	_, was := low.In(r.zone).Zone()
	for high.Sub(low) > time.Second {
		middle := low.Add(high.Sub(low) / 2).Truncate(time.Second)
		if _, offset := middle.In(r.zone).Zone(); offset == was {
			low = middle
		} else {
			high = middle
		}
	}
	return high.Truncate(time.Second), high.Truncate(time.Second)
}

// asUTC is the time that a clock shows, told as if it were UTC.
func asUTC(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// justDue is for how long after its time a firing is not one that was missed.
const justDue = time.Minute

// Due are the times at which the schedule is to be fired now, in order: of several, or of one
// that was missed, by what missed: says. since is the last time that needs nothing any more.
// passed is the last of those that are passed over; zero: none is.
func (s *Schedule) Due(since, ended, now time.Time) (fire []time.Time, passed time.Time) {
	if s.Missed != MissedAll {
		last, ever := s.lastDue(since, ended, now)
		switch {
		case !ever:
			return nil, passed
		case s.tooOld(last, now), s.Missed == MissedSkip && now.Sub(last) > justDue:
			return nil, last
		}
		return []time.Time{last}, passed
	}
	all := s.between(since, ended, now)
	for len(all) > 0 && s.tooOld(all[0], now) {
		passed, all = all[0], all[1:]
	}
	return all, passed
}

// Passed are the times after since, and up to now, that missed: all passes over, as they are older than within: says.
func (s *Schedule) Passed(since, ended, now time.Time) (old []time.Time) {
	for _, due := range s.between(since, ended, now) {
		if s.tooOld(due, now) {
			old = append(old, due)
		}
	}
	return old
}

func (s *Schedule) tooOld(due, now time.Time) bool {
	return s.reckoned.within > 0 && now.Sub(due) > s.reckoned.within
}

// lookBack is how far back the last time is looked for at which a schedule was due: near first,
// as a line for every minute is due half a million times a year.
var lookBack = [...]time.Duration{2 * time.Hour, 3 * 24 * time.Hour, 40 * 24 * time.Hour, 0}

// lastDue is the last time after since, and up to now, at which the schedule is due.
func (s *Schedule) lastDue(since, ended, now time.Time) (last time.Time, ever bool) {
	for _, back := range lookBack {
		from := now.Add(-back)
		if back == 0 || s.reckoned.cron == nil || from.Before(since) {
			from, back = since, 0
		}
		if all := s.between(from, ended, now); len(all) > 0 {
			return all[len(all)-1], true
		}
		if back == 0 {
			return last, false
		}
	}
	return last, false
}

// between are the first of the times after since, and up to now, at which the schedule is due.
func (s *Schedule) between(since, ended, now time.Time) (all []time.Time) {
	for t := since; len(all) < mostSteps; {
		due, ever := s.Next(t, ended)
		if !ever || due.After(now) {
			break
		}
		all = append(all, due)
		if s.reckoned.every > 0 { // the next counts from the end of this one
			break
		}
		t = due
	}
	return all
}
