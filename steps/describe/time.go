package describe

import (
	"slices"
	"strings"
	"time"
)

// Time is metadata.time: the first and the last second that is meant. A period that goes on has no end.
type Time struct {
	Start     time.Time `json:"start"`
	End       time.Time `json:"end,omitzero"`
	Precision string    `json:"precision"` // year, month, day or second
	Source    string    `json:"source,omitempty"`
}

// precisions of times, the least exact first.
var precisions = []string{"year", "month", "day", "second"}

// shapes of times, and how exact each is.
var shapes = []struct {
	layout, precision string
	zone              bool
}{
	{time.RFC3339Nano, "second", true}, {"2006-01-02T15:04:05Z0700", "second", true}, {"2006:01:02 15:04:05Z07:00", "second", true},
	{"2006-01-02T15:04:05", "second", false}, {"2006-01-02 15:04:05", "second", false}, {"2006:01:02 15:04:05", "second", false},
	{"20060102150405", "second", false}, {"2006-01-02 15:04:05.999999999", "second", false}, {"2006-01-02T15:04:05.999999999", "second", false},
	{"2006-01-02T15:04Z07:00", "minute", true}, {"2006-01-02T15:04", "minute", false}, {"2006:01:02 15:04", "minute", false}, {"2006-01-02 15:04", "minute", false}, {"2006-01-02T15", "hour", false},
	{"2006-01-02", "day", true}, {"2006:01:02", "day", true}, {"20060102", "day", true}, {"2006/01/02", "day", true},
	{"2006-01", "month", true}, {"2006:01", "month", true}, {"200601", "month", true}, {"2006", "year", true},
}

// period reads a time; zone is false where it is one of the day without a time zone, which
// is taken as UTC. ok is false where it is no time.
func period(text string) (t Time, zone, ok bool) {
	text = strings.TrimSpace(text)
	for _, s := range shapes {
		at, err := time.Parse(s.layout, text)
		if err != nil || at.Year() < 1 {
			continue
		}
		at = at.UTC().Truncate(time.Second)
		end := at
		switch s.precision {
		case "minute", "hour": // shorter than a day, of which the manifest knows seconds alone
			end = at.Add(map[string]time.Duration{"minute": time.Minute, "hour": time.Hour}[s.precision] - time.Second)
			s.precision = "second"
		case "day":
			end = at.AddDate(0, 0, 1).Add(-time.Second)
		case "month":
			end = at.AddDate(0, 1, 0).Add(-time.Second)
		case "year":
			end = at.AddDate(1, 0, 0).Add(-time.Second)
		}
		return Time{Start: at, End: end, Precision: s.precision}, s.zone, true
	}
	return t, false, false
}

// setFirst sets the time from the first of texts that is one; where none is, the first that says anything is told of.
func (f *Facts) setFirst(texts []string, end string) {
	is := slices.IndexFunc(texts, func(t string) bool { _, _, ok := period(t); return ok })
	if is < 0 {
		is = slices.IndexFunc(texts, func(t string) bool { return strings.TrimSpace(t) != "" })
	}
	if is < 0 {
		texts, is = []string{""}, 0
	}
	f.setTime(texts[is], end)
}

// open are the ends that ISO 19108 has for a period that goes on, or of which no end is known.
var open = []string{"now", "unknown", "after", "before"}

// setTime sets the time from two texts, the second of which may be empty, and warns of
// what is wrong with them.
func (f *Facts) setTime(start, end string) {
	if strings.TrimSpace(start) == "" {
		start, end = end, ""
	}
	if strings.TrimSpace(start) == "" {
		return
	}
	t, zone, ok := period(start)
	if !ok {
		f.warn("%q is no time", clean(start))
		return
	}
	without := clean(start)
	if strings.TrimSpace(end) != "" {
		last, endZone, ok := period(end)
		switch {
		case slices.Contains(open, strings.TrimSpace(end)):
			f.warn("the end is %q: the time has no end", strings.TrimSpace(end))
			t.End = time.Time{}
		case !ok:
			f.warn("the end %q is no time: the time has no end", clean(end))
			t.End = time.Time{}
		case last.End.Before(t.Start):
			f.warn("the end %s is before the start %s; the end is left out", clean(end), clean(start))
		default:
			t.End = last.End
			if zone && !endZone {
				zone, without = false, clean(end)
			}
		}
	}
	if !zone {
		f.warn("%q has no time zone; it is taken as UTC", without)
	}
	f.Time = &t
}

// notToCome warns of a time that begins after now. Of what is recorded it is wrong; a side-car may mean it.
func (f *Facts) notToCome(now time.Time) {
	t := f.Time
	switch {
	case t == nil || !t.Start.After(now.AddDate(0, 0, 1)): // a day: it may lack a time zone
	case f.Kind == Metadata:
		f.warn("the time begins %s, which is to come", t.Start.Format(time.DateOnly))
	default:
		f.warn("taken %s, which is to come; the time is left out", t.Start.Format(time.DateOnly))
		f.Time = nil
	}
}
