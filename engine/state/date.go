package state

import (
	"fmt"
	"strings"
	"time"

	"bagpipe/engine/condition"
	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// Date is a step's notBefore: one of a time, a while after the workflow's start,
// and a path into the manifest.
type Date struct {
	Time  time.Time
	After time.Duration
	Path  string
}

// UnmarshalYAML reads a date.
func (d *Date) UnmarshalYAML(b []byte) error {
	s := strings.Trim(strings.TrimSpace(string(b)), `"'`)
	if t, err := ParseTime(s); err == nil {
		*d = Date{Time: t}
		return nil
	}
	if after, err := layout.ParseDuration(s); err == nil {
		*d = Date{After: after}
		return nil
	}
	if strings.HasPrefix(s, "metadata.") && condition.CheckPath(s) == nil {
		*d = Date{Path: s}
		return nil
	}
	return fmt.Errorf("expected a date such as 2027-01-31 or 2027-01-31T08:00:00+01:00, a while after the start such as 36h or 90d, or a path such as metadata.embargoUntil, not %s", s)
}

// ParseTime reads an RFC 3339 time, or a date, which begins at midnight UTC.
func ParseTime(s string) (time.Time, error) {
	for _, form := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(form, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: expected a date such as 2027-01-31, or a time such as 2027-01-31T08:00:00+01:00", s)
}

// opens says from when on a step may start, or why that cannot be told. The zero
// time is no bound.
func (d *Date) opens(created time.Time, manifest []byte) (from time.Time, unclear string) {
	switch {
	case d == nil:
		return time.Time{}, ""
	case !d.Time.IsZero():
		return d.Time, ""
	case d.Path == "":
		return created.Add(d.After), ""
	}
	v := gjson.GetBytes(manifest, d.Path)
	if !v.Exists() || v.Type == gjson.Null {
		return time.Time{}, ""
	}
	t, err := ParseTime(v.Str)
	if err != nil {
		return t, fmt.Sprintf("%s in %s is no date: %.60s", d.Path, layout.ManifestJSON, v.Raw)
	}
	return t, ""
}
