package queue

import (
	"cmp"
	"container/heap"
	"time"

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
	heaps map[orderedKey]*orderedHeap
	taken int // since ready was last cleared of what was taken
}

type orderedKey struct {
	readyKey
	collection uint64
}

type orderedEntry struct {
	entry entry
	place place
	rank  int // of the lane
	keys  []gjson.Result
}

type orderedHeap struct {
	of      *ordered
	entries []orderedEntry
}

// fewTaken is how many steps are taken before what is left of them is cleared away.
const fewTaken = 1024

// SetOrder makes Take hand out by an order of its own.
func (x *Index) SetOrder(o Order) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.order = &ordered{Order: o, heaps: map[orderedKey]*orderedHeap{}}
	x.eachReady(func(e entry, key readyKey, p place) { x.pushOrdered(e, key, p) })
	x.signal()
}

// eachReady visits what stands in the queues, ready or not any more.
func (x *Index) eachReady(visit func(entry, readyKey, place)) {
	for key, root := range x.ready {
		for _, lane := range root.within {
			for _, collection := range lane.within {
				for _, batch := range collection.within {
					for _, e := range batch.entries {
						visit(e, key, place{lane.key, collection.key, batch.key})
					}
				}
			}
		}
	}
}

func (x *Index) pushOrdered(e entry, key readyKey, p place) {
	full, ok := x.entryOf(e)
	if !ok {
		return
	}
	at := orderedKey{key, p.collection}
	h := x.order.heaps[at]
	if h == nil {
		h = &orderedHeap{of: x.order}
		x.order.heaps[at] = h
	}
	rank, _ := x.lane(p.lane)
	heap.Push(h, orderedEntry{e, p, rank, x.order.Keys(full)})
}

// settleOrdered brings the next entry to the front that is still ready, and stands by what
// its values are now; false: there is none.
func (x *Index) settleOrdered(h *orderedHeap, keep func(entry, place) bool) bool {
	for len(h.entries) > 0 {
		top := h.entries[0]
		if !keep(top.entry, top.place) {
			heap.Pop(h)
			continue
		}
		full, _ := x.entryOf(top.entry)
		rank, _ := x.lane(top.place.lane)
		keys := x.order.Keys(full)
		if rank == top.rank && x.order.Compare(keys, top.keys) == 0 {
			return true
		}
		h.entries[0].keys, h.entries[0].rank = keys, rank
		heap.Fix(h, 0)
	}
	return false
}

// takeOrdered is Take by the order.
func (x *Index) takeOrdered(now time.Time, may func(StepID, *state.Step) bool) (e Entry, ok, limited bool) {
	var best *orderedHeap
	var from readyKey
	for key, h := range x.order.heaps {
		keep := func(e entry, p place) bool { return x.keep(e, key.readyKey, p, now) }
		if !x.settleOrdered(h, keep) {
			delete(x.order.heaps, key)
			continue
		}
		top := &h.entries[0]
		switch {
		case x.collectionFull(key.readyKey, layout.Name(x.names.Text(key.collection))):
			limited = true
		case !x.may(top.entry, may):
		case x.stepFull(key.readyKey, top.entry):
			limited = true
		case best == nil || top.compare(&best.entries[0], x.order) < 0:
			best, from = h, key.readyKey
		}
	}
	if best == nil {
		return Entry{}, false, limited
	}
	e = x.handOut(heap.Pop(best).(orderedEntry).entry, from)
	x.tookOrdered(now)
	return e, true, false
}

// tookOrdered clears the other queues of what was taken, once that is much.
func (x *Index) tookOrdered(now time.Time) {
	x.order.taken++
	if x.order.taken < max(fewTaken, x.count.items/4) {
		return
	}
	x.order.taken = 0
	x.rebuild(func(e entry, key readyKey, p place) bool { return x.stillReady(e, key, p, now) })
}

func (a *orderedEntry) compare(b *orderedEntry, o *ordered) int {
	return cmp.Or(o.Compare(a.keys, b.keys), cmp.Compare(a.rank, b.rank), a.entry.compare(b.entry))
}

func (h *orderedHeap) Len() int { return len(h.entries) }

func (h *orderedHeap) Less(i, j int) bool { return h.entries[i].compare(&h.entries[j], h.of) < 0 }

func (h *orderedHeap) Swap(i, j int) { h.entries[i], h.entries[j] = h.entries[j], h.entries[i] }

func (h *orderedHeap) Push(v any) { h.entries = append(h.entries, v.(orderedEntry)) }

func (h *orderedHeap) Pop() any {
	last := h.entries[len(h.entries)-1]
	h.entries[len(h.entries)-1] = orderedEntry{}
	h.entries = h.entries[:len(h.entries)-1]
	return last
}
