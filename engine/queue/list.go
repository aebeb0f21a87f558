package queue

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"bagpipe/engine/queue/internal/turns"
	"bagpipe/layout"
)

// Question narrows what is listed of what is ready; zero fields do not.
type Question struct {
	Step  func(StepID) bool // asked once for each step
	Entry func(Entry) bool  // asked of each entry that the step lets through
	Limit int               // of each list; 0: all
	Brief bool              // of items without what Entry asks, no more than the head is wanted
}

// brief is an entry that stillReady has just looked at, of which x.at is the item.
func (x *store) brief(e turns.Entry) Entry {
	id := layout.ItemIDOf(e.Item)
	run := x.at.Run(uint64(e.Run))
	it := &Item{ID: id, Collection: layout.Name(x.names.Text(x.at.Collection)), Batch: x.names.Text(x.at.Batch),
		Lane: layout.Name(x.names.Text(x.at.Lane)), Created: time.UnixMilli(x.at.Created).UTC(), Label: string(x.at.Label)}
	out := Entry{Item: it, Run: x.names.Text(uint64(e.Run)), Step: layout.Name(x.names.Plan(run.Plan).Steps[e.N].Name), N: int(e.N), Since: it.Created}
	if since := x.at.Steps[run.From+int(e.N)].Since; since != 0 {
		out.Since = time.UnixMilli(since).UTC()
	}
	return out
}

// people gives the steps of an item that wait for a person.
func people(it *Item, q Question) (out []Entry) {
	for run, i := range it.Steps() {
		e := Entry{Item: it, Run: run.Name, Step: layout.Name(run.Plan.Steps[i].Name), N: i}
		if it.Waits(run, i) && (q.Step == nil || q.Step(StepID{Workflow: run.Plan.Name, Step: e.Step})) && (q.Entry == nil || q.Entry(e)) {
			out = append(out, e)
		}
	}
	return out
}

// walk goes through what is ready at now in the order of takes, and changes nothing.
func (x *store) walk(q Question, now time.Time) func() (turns.Entry, bool) {
	keys := slices.SortedFunc(maps.Keys(x.ready), func(a, b readyKey) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Step, b.Step))
	})
	w := &turns.Walk{}
	for i, key := range keys {
		if q.Step == nil || q.Step(key.StepID) {
			w.Add(i, x.ready[key], x.lane)
		}
	}
	w.Start()
	return func() (turns.Entry, bool) {
		return w.Next(func(e turns.Entry, tree int, p turns.Place) bool { return x.stillReady(e, keys[tree], p, now) })
	}
}

// Queue lists, in the order they would be handed out if there were no limits, the
// steps that are ready at now, and those that wait for a person alone, oldest first.
// With a limit it looks at little more than it lists.
func (v View) Queue(now time.Time, q Question) (ready, waits []Entry) {
	x := v.s
	x.mu.Lock()
	x.settle(now)
	walk := x.walk(q, now)
	for q.Limit == 0 || len(ready) < q.Limit {
		e, ok := walk()
		if !ok {
			break
		}
		if q.Brief && q.Entry == nil {
			ready = append(ready, x.brief(e))
			continue
		}
		full, ok := x.entryOf(e)
		if ok && (q.Entry == nil || q.Entry(full)) {
			ready = append(ready, full)
		}
	}
	waiting := heapOf(x.people)
	x.mu.Unlock()
	for it := range v.oldest(waiting) {
		if waits = append(waits, people(it, q)...); q.Limit > 0 && len(waits) >= q.Limit {
			return ready, waits[:q.Limit]
		}
	}
	return ready, waits
}

// Off gives the items of which a step is out of the flow, the oldest first; it looks
// at no other.
func (v View) Off() iter.Seq[*Item] {
	x := v.s
	x.mu.Lock()
	off := heapOf(x.off)
	x.mu.Unlock()
	return v.oldest(off)
}

func heapOf(items map[uint64]int64) turns.Heap[aged] {
	all := make(turns.Heap[aged], 0, len(items))
	for bits, created := range items {
		all = append(all, aged{created, bits})
	}
	all.Order()
	return all
}

// oldest gives the items that are still there, the oldest first.
func (v View) oldest(all turns.Heap[aged]) iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		for len(all) > 0 {
			it := v.Item(layout.ItemIDOf(all.Pop().item))
			if it != nil && !yield(it) {
				return
			}
		}
	}
}

// aged is an item and its creation.
type aged struct {
	created int64 // ms
	item    uint64
}

// Compare has the older item first.
func (a aged) Compare(b aged) int {
	return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.item, b.item))
}
