package queue

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// The rules are: a condition is comparisons joined by and, or, not and parentheses;
// and binds closer than or.
//
//	PATH = VALUE     it is VALUE; of a list, one member is. Also != < <= > >=
//	PATH ~ PATTERN   a text that fits: * ? [a-z], as in a shell
//	PATH in (V, V)   it is one of these
//	PATH exists      there is something that is not null; also PATH alone
//
// A path leads into manifest.json, or, after execution., into execution.json: names
// with dots between them, a number for a place in a list, # for its length, \. for a
// dot in a name. A value is a number, text (in quotes if it is not one word), true,
// false, a date (2026-11-20, or with a time), or now, now-30d, now+12h (s, m, h, d,
// w, y). What is not there fits nothing but !=. A text that is a number, or a date,
// is compared as one where the value is one.

// Values gives what stands at a path of an item's records.
type Values func(path string) gjson.Result

// Where is a condition on an item.
type Where struct {
	root  condition
	paths []string
}

// WhereError says where a condition is wrong, and what was expected there.
type WhereError struct {
	Column int // from 1
	Text   string
}

func (e *WhereError) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Text) }

// condition answers whether it holds at now, and when that may change by time alone;
// zero: never.
type condition interface {
	holds(v Values, now time.Time) (is bool, again time.Time)
}

// Holds tells whether the condition holds at now; again is when that may be
// otherwise though nothing of the item has changed, zero if never.
func (w *Where) Holds(v Values, now time.Time) (is bool, again time.Time) {
	if w == nil {
		return true, time.Time{}
	}
	return w.root.holds(v, now)
}

// Paths are those that are asked for, sorted.
func (w *Where) Paths() []string {
	if w == nil {
		return nil
	}
	return w.paths
}

type every []condition

func (c every) holds(v Values, now time.Time) (bool, time.Time) {
	is, again := true, time.Time{}
	for _, one := range c {
		ok, at := one.holds(v, now)
		is, again = is && ok, sooner(again, at)
	}
	return is, again
}

type some []condition

func (c some) holds(v Values, now time.Time) (bool, time.Time) {
	is, again := false, time.Time{}
	for _, one := range c {
		ok, at := one.holds(v, now)
		is, again = is || ok, sooner(again, at)
	}
	return is, again
}

type not struct{ of condition }

func (c not) holds(v Values, now time.Time) (bool, time.Time) {
	is, again := c.of.holds(v, now)
	return !is, again
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

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
	at       time.Time
	shift    time.Duration
	isNumber bool
	isBool   bool
	isTime   bool
	isNow    bool
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
	if !found.IsArray() {
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
		ok, _ := path.Match(w.text, found.Str) // the pattern was checked
		return ok && found.Type == gjson.String, time.Time{}
	case w.isTime:
		at, ok := asTime(found)
		if !ok {
			return false, time.Time{}
		}
		return w.fitsTime(at, op, now)
	case w.isNumber:
		n, ok := asNumber(found)
		return ok && compares(op, cmpFloat(n, w.number)), time.Time{}
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

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func asNumber(v gjson.Result) (float64, bool) {
	if v.Type == gjson.Number {
		return v.Num, true
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

// ParseWhere reads a condition; its errors are *WhereError.
func ParseWhere(text string) (*Where, error) {
	p := &whereParser{text: text}
	p.next()
	root, err := p.or(0)
	if err == nil && p.token != "" {
		err = p.errorf("expected and, or, or the end, not %s", p.token)
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(p.paths)
	return &Where{root: root, paths: slices.Compact(p.paths)}, nil
}
