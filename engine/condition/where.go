package condition

import (
	"fmt"
	"time"

	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// Values gives what stands at a path of an item's records.
type Values func(path string) gjson.Result

// Where is a condition on an item.
type Where struct {
	root  node
	paths []string
}

// ParseOnRecords reads a condition of which each path may lead into an item's records: one that is misspelt would never hold,
// unsaid.
func ParseOnRecords(text string) (*Where, error) {
	w, err := Parse(text)
	if err != nil {
		return nil, err
	}
	for _, path := range w.Paths() {
		if err := layout.CheckRecordPath(path); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Error says where a condition is wrong, and what was expected there.
type Error struct {
	Column int // from 1
	Text   string
}

// Error tells the column and what was expected.
func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Text) }

// node is a part of a condition. holds answers whether the part holds at now, and when
// that may change by time alone; zero: never.
type node interface {
	holds(v Values, now time.Time) (is bool, again time.Time)
}

// Holds reports whether the condition holds at now; again is when that may be
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

// Must visits the comparisons without which the condition does not hold and that ask for texts or numbers: one of these
// has to stand at the path, a number also as a text that is read as one.
func (w *Where) Must(visit func(path string, texts []string, numbers []float64)) {
	if w != nil {
		must(w.root, visit)
	}
}

func must(n node, visit func(path string, texts []string, numbers []float64)) {
	switch n := n.(type) {
	case every:
		for _, one := range n {
			must(one, visit)
		}
	case *comparison:
		var texts []string
		var numbers []float64
		for _, v := range n.values {
			switch {
			case v.isBool || v.isTime:
				return // it is equal to what is written otherwise, too
			case v.isNumber:
				numbers = append(numbers, v.number)
			default:
				texts = append(texts, v.text)
			}
		}
		if n.op == "=" || n.op == "in" {
			visit(n.path, texts, numbers)
		}
	}
}

type every []node

func (c every) holds(v Values, now time.Time) (bool, time.Time) {
	is, again := true, time.Time{}
	for _, one := range c {
		ok, at := one.holds(v, now)
		is, again = is && ok, sooner(again, at)
	}
	return is, again
}

type some []node

func (c some) holds(v Values, now time.Time) (bool, time.Time) {
	is, again := false, time.Time{}
	for _, one := range c {
		ok, at := one.holds(v, now)
		is, again = is || ok, sooner(again, at)
	}
	return is, again
}

type not struct{ of node }

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
