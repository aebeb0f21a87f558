package runner

import (
	"cmp"
	"slices"
	"time"
)

// End is one end of a step. Key tells it from others of the same time.
type End struct {
	At     time.Time
	Key    string
	Failed bool
}

func (e End) compare(o End) int { return cmp.Or(e.At.Compare(o.At), cmp.Compare(e.Key, o.Key)) }

// Tally counts the ends of one step, for thresholds. The zero value is ready. It
// keeps the last ends that the largest window asks for and, where a window is 0,
// all failures. It has no lock.
type Tally struct {
	ends   []End // in order
	window int   // the largest asked for
	ever   bool  // a window of 0 was
	floor  End   // what is not after it may have been dropped
	full   int   // how many ends make it look for what can be dropped
}

const leastCompact = 64

// Watch says that thresholds of this window will be asked for. It answers true
// when ends that count may have been dropped: all must be added again.
func (t *Tally) Watch(window int) (again bool) {
	grows := window > t.window || window == 0 && !t.ever
	t.window, t.ever = max(t.window, window), t.ever || window == 0
	if !grows || t.floor == (End{}) {
		return false
	}
	t.ends, t.floor, t.full = nil, End{}, 0
	return true
}

// Add counts an end, once, in whatever order they come.
func (t *Tally) Add(e End) {
	if e.compare(t.floor) <= 0 && t.floor != (End{}) && !(t.ever && e.Failed) {
		return
	}
	i, there := slices.BinarySearchFunc(t.ends, e, End.compare)
	if there {
		return
	}
	t.ends = slices.Insert(t.ends, i, e)
	if len(t.ends) >= max(t.full, leastCompact) {
		t.compact()
		t.full = 2 * len(t.ends)
	}
}

func (t *Tally) compact() {
	from := max(0, len(t.ends)-t.window)
	if from == 0 {
		return
	}
	t.floor = t.ends[from-1]
	old := slices.DeleteFunc(slices.Clone(t.ends[:from]), func(e End) bool { return !t.ever || !e.Failed })
	t.ends = append(old, t.ends[from:]...)
}

// Count gives the failures among the last window ends after since, and among how
// many that is; a window of 0 is all.
func (t *Tally) Count(window int, since time.Time) (failures, of int) {
	for i := len(t.ends) - 1; i >= 0 && t.ends[i].At.After(since); i-- {
		if of++; t.ends[i].Failed {
			failures++
		}
		if of == window {
			break
		}
	}
	return failures, of
}

// Reached tells whether failures are as many as a threshold of count asks for; a
// count of 0 ignores them.
func Reached(count, failures int) bool { return count > 0 && failures >= count }
