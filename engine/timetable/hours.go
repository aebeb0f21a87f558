package timetable

import (
	"fmt"
	"time"
)

// Hours are those of a day between two times, of which the second may be one of the next day.
// Zero, they are all.
type Hours struct {
	zone         *time.Location
	opens, shuts time.Duration // of the day
}

// ParseHours reads two times of the day in a zone.
func ParseHours(between []string, zone *time.Location) (h Hours, err error) {
	if len(between) != 2 || between[0] == between[1] {
		return h, fmt.Errorf("expected two times of the day, as ['20:00', '06:00']")
	}
	h.zone = zone
	for i, to := range []*time.Duration{&h.opens, &h.shuts} {
		t, err := time.Parse("15:04", between[i])
		if err != nil {
			return h, fmt.Errorf("expected a time of the day such as '06:00', not %q", between[i])
		}
		*to = time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
	}
	return h, nil
}

// Has reports whether the zone's clock shows one of the hours.
func (h Hours) Has(t time.Time) bool {
	if h.opens == h.shuts {
		return true
	}
	wall := asUTC(t.In(h.zone))
	day := wall.Sub(wall.Truncate(24 * time.Hour))
	if h.opens < h.shuts {
		return h.opens <= day && day < h.shuts
	}
	return h.opens <= day || day < h.shuts
}
