package target

import (
	"fmt"
	"strings"
	"time"
)

// Hours is a part of the day, as 22:00-05:00, from its first minute until before its last; "" is
// all of it.
type Hours string

// bounds are the minutes of the day that it begins and ends at.
func (h Hours) bounds() (from, until int, err error) {
	start, end, _ := strings.Cut(string(h), "-")
	for text, to := range map[string]*int{start: &from, end: &until} {
		at, err := time.Parse("15:04", strings.TrimSpace(text))
		if err != nil || start == end {
			return 0, 0, fmt.Errorf("expected a part of the day such as 22:00-05:00, not %q", string(h))
		}
		*to = at.Hour()*60 + at.Minute()
	}
	return from, until, nil
}

// Hold reports whether at, by its own zone, is within.
func (h Hours) Hold(at time.Time) bool {
	from, until, err := h.bounds()
	if h == "" || err != nil {
		return true
	}
	minute := at.Hour()*60 + at.Minute()
	if from < until {
		return from <= minute && minute < until
	}
	return minute >= from || minute < until
}
