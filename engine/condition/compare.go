package condition

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// comparison is of what stands at a path with one value, or some.
type comparison struct {
	path   string
	op     string // = != < <= > >= ~ in exists
	values []value
}

// value is a constant, or a time relative to now.
type value struct {
	text     string
	number   float64
	at       time.Time // of a number that may be a year, its beginning
	shift    time.Duration
	isNumber bool
	isBool   bool
	isTime   bool
	isNow    bool
	exact    bool // a text is no number, and of a list a member may be equal only
}

func (c *comparison) holds(v Values, now time.Time) (bool, time.Time) {
	found := v(c.path)
	there := found.Exists() && found.Type != gjson.Null
	var again time.Time
	any := func(op string) bool {
		is := false
		for _, want := range c.values {
			ok, at := fitsAny(found, op, want, now)
			is, again = is || ok, sooner(again, at)
		}
		return is
	}
	switch c.op {
	case "exists":
		return there, again
	case "!=":
		return !there || !any("="), again
	case "in":
		return there && any("="), again
	}
	return there && any(c.op), again
}

// fitsAny compares a value, or the members of a list.
func fitsAny(found gjson.Result, op string, want value, now time.Time) (is bool, again time.Time) {
	if !found.IsArray() || want.exact && op != "=" {
		return want.fits(found, op, now)
	}
	for _, member := range found.Array() {
		ok, at := want.fits(member, op, now)
		is, again = is || ok, sooner(again, at)
	}
	return is, again
}

func (w value) fits(found gjson.Result, op string, now time.Time) (bool, time.Time) {
	switch {
	case op == "~":
		return found.Type == gjson.String && layout.MatchPattern(w.text, found.Str), time.Time{}
	case w.isTime:
		at, ok := asTime(found)
		if !ok {
			return false, time.Time{}
		}
		return w.fitsTime(at, op, now)
	case w.isNumber:
		if n, ok := w.asNumber(found); ok {
			return compares(op, cmp.Compare(n, w.number)), time.Time{}
		}
		at, ok := asTime(found) // that lies before or after a year
		return ok && !w.at.IsZero() && op != "=" && compares(op, at.Compare(w.at)), time.Time{}
	case w.isBool:
		return found.IsBool() && op == "=" && found.Bool() == (w.text == "true"), time.Time{}
	}
	return found.Type == gjson.String && compares(op, strings.Compare(found.Str, w.text)), time.Time{}
}

func (w value) fitsTime(at time.Time, op string, now time.Time) (bool, time.Time) {
	if !w.isNow {
		return compares(op, at.Compare(w.at)), time.Time{}
	}
	is := compares(op, at.Compare(now.Add(w.shift)))
	if turn := at.Add(-w.shift); !now.After(turn) {
		return is, turn.Add(time.Millisecond)
	}
	return is, time.Time{}
}

func compares(op string, c int) bool {
	switch op {
	case "=":
		return c == 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	case ">=":
		return c >= 0
	}
	return false
}

func (w value) asNumber(v gjson.Result) (float64, bool) {
	if v.Type == gjson.Number || w.exact {
		return v.Num, v.Type == gjson.Number
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(v.Str), 64)
	return n, err == nil && v.Type == gjson.String
}

func asTime(v gjson.Result) (time.Time, bool) {
	if v.Type != gjson.String {
		return time.Time{}, false
	}
	return parseTime(v.Str)
}

// parseTime reads a time, or a day, month or year, of which it is the beginning.
func parseTime(s string) (time.Time, bool) {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", "2006-01", "2006"} {
		if t, err := time.Parse(form, s); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
