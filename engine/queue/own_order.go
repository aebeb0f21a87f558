package queue

import (
	"cmp"
	"time"

	"bagpipe/engine/queue/internal/turns"
	"bagpipe/engine/state"
	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// The rules are: a run that is pointed at a queue with an order of its own takes by
// that order alone, and by lane and age where it leaves two alike; shares between
// lanes, collections and batches do not count, as they are another order. What is
// ready then stands in heaps besides, one for each step and collection, as limits hold
// those back as a whole. What stands there may be no longer ready, or have other
// values by now; Take looks again.

// Order is an order that a queue has of its own.
type Order struct {
	Keys    func(Entry) []gjson.Result
	Compare func(a, b []gjson.Result) int
}

// ordered is what is ready, by such an order.
type ordered struct {
	Order
	heaps map[orderedKey]*turns.Heap[orderedEntry]
	taken int // since ready was last cleared of what was taken
}

type orderedKey struct {
	readyKey
	collection uint64
}

type orderedEntry struct {
	of    *ordered
	entry turns.Entry
	place turns.Place
	rank  int // of the lane
	keys  []gjson.Result
}

// fewTaken is how many steps are taken before what is left of them is cleared away.
const fewTaken = 1024

// SetOrder makes Take hand out by an order of its own.
func (i *Index) SetOrder(o Order) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	x.order = &ordered{Order: o, heaps: map[orderedKey]*turns.Heap[orderedEntry]{}}
	x.eachReady(func(e turns.Entry, key readyKey, p turns.Place) { x.pushOrdered(e, key, p) })
	x.signal()
}

func (x *store) pushOrdered(e turns.Entry, key readyKey, p turns.Place) {
	full, ok := x.entryOf(e)
	if !ok {
		return
	}
	at := orderedKey{key, p.Collection}
	h := x.order.heaps[at]
	if h == nil {
		h = &turns.Heap[orderedEntry]{}
		x.order.heaps[at] = h
	}
	rank, _ := x.lane(p.Lane)
	h.Push(orderedEntry{x.order, e, p, rank, x.order.Keys(full)})
}

// settleOrdered brings the next entry to the front that is still ready, and stands by what
// its values are now; false: there is none.
func (x *store) settleOrdered(h *turns.Heap[orderedEntry], keep func(turns.Entry, turns.Place) bool) bool {
	for len(*h) > 0 {
		top := &(*h)[0]
		if !keep(top.entry, top.place) {
			h.Pop()
			continue
		}
		full, _ := x.entryOf(top.entry)
		rank, _ := x.lane(top.place.Lane)
		keys := x.order.Keys(full)
		if rank == top.rank && x.order.Compare(keys, top.keys) == 0 {
			return true
		}
		top.keys, top.rank = keys, rank
		h.Fix(0)
	}
	return false
}

// takeOrdered is Take by the order.
func (x *store) takeOrdered(now time.Time, may func(StepID, *state.Step) bool) (e Entry, ok, limited bool) {
	var best *turns.Heap[orderedEntry]
	var from readyKey
	for key, h := range x.order.heaps {
		keep := func(e turns.Entry, p turns.Place) bool { return x.keep(e, key.readyKey, p, now) }
		if !x.settleOrdered(h, keep) {
			delete(x.order.heaps, key)
			continue
		}
		top := &(*h)[0]
		switch {
		case x.collectionFull(key.readyKey, layout.Name(x.names.Text(key.collection))):
			limited = true
		case !x.may(top.entry, may):
		case x.stepFull(key.readyKey, top.entry):
			limited = true
		case best == nil || top.Compare((*best)[0]) < 0:
			best, from = h, key.readyKey
		}
	}
	if best == nil {
		return Entry{}, false, limited
	}
	e = x.handOut(best.Pop().entry, from)
	x.tookOrdered(now)
	return e, true, false
}

// tookOrdered clears the other queues of what was taken, once that is much.
func (x *store) tookOrdered(now time.Time) {
	x.order.taken++
	if x.order.taken < max(fewTaken, x.count.items/4) {
		return
	}
	x.order.taken = 0
	x.rebuild(func(e turns.Entry, key readyKey, p turns.Place) bool { return x.stillReady(e, key, p, now) })
}

// Compare has the entry first that the order has first; then lane and age decide.
func (a orderedEntry) Compare(b orderedEntry) int {
	return cmp.Or(a.of.Compare(a.keys, b.keys), cmp.Compare(a.rank, b.rank), a.entry.Compare(b.entry))
}
