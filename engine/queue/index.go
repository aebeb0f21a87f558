package queue

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Entry is one step of one item that is ready, or would be but for a person.
type Entry struct {
	Item *Item
	Run  string // accession.1
	Step layout.Name
	N    int // the step's place in the definition
}

type key struct {
	item layout.ItemID
	run  string
	step layout.Name
}

func (e Entry) key() key { return key{e.Item.ID, e.Run, e.Step} }

// Index holds the items that have something left to do, and those that are done.
type Index struct {
	mu     sync.Mutex // guards all below
	items  map[layout.ItemID]*Item
	ready  map[readyKey]*entryHeap // may hold entries that are no longer true; Take looks again
	queued map[key]readyKey        // in which of ready
	dated  dateHeap                // steps whose time is to come
	taken  map[key]bool
	runs   map[layout.ItemID]bool // items with a step in progress
	open   int                    // steps that wait or run, of items nothing keeps from going on
	only   func(Entry) bool       // what may be handed out; nil: everything
	wake   chan struct{}

	ahead  int // items with such steps
	limits Limits
	count  flights         // of items, and of claims
	claims map[key]claimed // handed out, and not in progress yet

	batches  batches
	families families
}

// New makes an empty index.
func New() *Index {
	return &Index{
		items: map[layout.ItemID]*Item{}, queued: map[key]readyKey{}, taken: map[key]bool{}, runs: map[layout.ItemID]bool{},
		wake: make(chan struct{}, 1), ready: map[readyKey]*entryHeap{}, count: newFlights(), claims: map[key]claimed{}, batches: newBatches(), families: newFamilies(),
	}
}

// Wake receives after the index changed; several changes may make one wake.
func (x *Index) Wake() <-chan struct{} { return x.wake }

// Only keeps the index from handing out, or waiting for, anything else than what
// want says. The lists are not narrowed by it.
func (x *Index) Only(want func(Entry) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.only = want
}

// Put replaces what the index knows of an item.
func (x *Index) Put(it *Item) {
	x.mu.Lock()
	defer x.mu.Unlock()
	was := x.items[it.ID]
	if was != nil {
		x.gather(was, false)
	}
	x.gather(it, true)
	x.join(was, it)
	x.replace(was, it)
	x.tellBatch(it.Batch)
	x.tellFamilies(it)
	x.signal()
}

// replace puts an item in the place of what it was.
func (x *Index) replace(was, it *Item) {
	x.overlay(it)
	if was != nil {
		x.tally(was, -1)
	}
	x.tally(it, 1)
	x.items[it.ID] = it
	if delete(x.runs, it.ID); it.running() {
		x.runs[it.ID] = true
	}
	for r := range it.Runs {
		run := &it.Runs[r]
		for i := range run.Steps {
			why := run.Steps[i].Blocked
			e := Entry{Item: it, Run: run.Name, Step: layout.Name(run.Plan.Steps[i].Name), N: i}
			if run.Steps[i].Status == state.InProgress {
				x.unclaim(e.key())
			}
			switch {
			case it.Broken != "" || it.Held:
			case why == nil:
				x.push(e)
			case !why.Until.IsZero():
				heap.Push(&x.dated, dated{why.Until, e})
			}
		}
	}
}

// tally counts an item n times: 1 when it comes, -1 when it goes.
func (x *Index) tally(it *Item, n int) {
	open := it.open()
	x.open += n * open
	if open > 0 {
		x.ahead += n
	}
	x.count.add(it, n)
}

func (x *Index) signal() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

func (x *Index) push(e Entry) {
	key := x.readyKey(e)
	if at, there := x.queued[e.key()]; there && at == key {
		return
	}
	x.queued[e.key()] = key
	h := x.ready[key]
	if h == nil {
		h = &entryHeap{}
		x.ready[key] = h
	}
	heap.Push(h, e)
}

// Nudge wakes who waits for the index, though nothing in it has changed.
func (x *Index) Nudge() { x.signal() }

// Remove forgets an item.
func (x *Index) Remove(id layout.ItemID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if was := x.items[id]; was != nil {
		x.gather(was, false)
		x.join(was, nil)
		x.tally(was, -1)
		defer func() { x.tellBatch(was.Batch); x.tellFamilies(was) }()
	}
	delete(x.items, id)
	delete(x.runs, id)
}

// Running gives the items that have a step in progress, in no order.
func (x *Index) Running() []*Item {
	x.mu.Lock()
	defer x.mu.Unlock()
	items := make([]*Item, 0, len(x.runs))
	for id := range x.runs {
		items = append(items, x.items[id])
	}
	return items
}

// Open is the number of steps that wait or run and can be expected to be done
// without a person.
func (x *Index) Open() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.open
}

// stillReady looks an entry up in the item as it now is.
func (x *Index) stillReady(e Entry, now time.Time) (Entry, bool) {
	it := x.items[e.Item.ID]
	if it == nil || x.only != nil && !x.only(e) {
		return e, false
	}
	for r := range it.Runs {
		if run := &it.Runs[r]; run.Name == e.Run && e.N < len(run.Steps) {
			e.Item = it
			return e, it.ready(run, e.N, now)
		}
	}
	return e, false
}

// Return ends a Take: the step has another status by now, or, if it was not
// claimed after all, is handed out again.
func (x *Index) Return(e Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.taken, e.key())
	x.unclaim(e.key())
	if now, ok := x.stillReady(e, time.Time{}); ok {
		x.push(now)
	} else if until := x.until(e); !until.IsZero() {
		// Its time may have come, and Take passed it over, while it was taken.
		heap.Push(&x.dated, dated{until, e})
	}
	x.signal()
}

// until is the time that alone keeps an entry's step from being ready; zero when
// there is none.
func (x *Index) until(e Entry) time.Time {
	it := x.items[e.Item.ID]
	if it == nil {
		return time.Time{}
	}
	for r := range it.Runs {
		if run := &it.Runs[r]; run.Name == e.Run && e.N < len(run.Steps) && run.Steps[e.N].Blocked != nil {
			return run.Steps[e.N].Blocked.Until
		}
	}
	return time.Time{}
}

// NextDue is the earliest time at which a step that waits for its date becomes
// ready; ok is false when none does.
func (x *Index) NextDue() (t time.Time, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.dated) > 0 {
		d := x.dated[0]
		if _, still := x.stillReady(d.entry, d.at); still {
			return d.at, true
		}
		heap.Pop(&x.dated)
	}
	return t, false
}

// Len is the number of items.
func (x *Index) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.items)
}

// Item finds one item; nil when there is none.
func (x *Index) Item(id layout.ItemID) *Item {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.items[id]
}

// Items gives all items, oldest first. The items must not be changed.
func (x *Index) Items() iter.Seq[*Item] {
	x.mu.Lock()
	all := make([]*Item, 0, len(x.items))
	for _, it := range x.items {
		all = append(all, it)
	}
	x.mu.Unlock()
	slices.SortFunc(all, func(a, b *Item) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return slices.Values(all)
}

// Queue lists, in the order they would be handed out, the steps that are ready
// at now (waits false) or wait for a person alone (waits true).
func (x *Index) Queue(now time.Time, want func(Entry) bool) (ready, waits []Entry) {
	for it := range x.Items() {
		for r := range it.Runs {
			run := &it.Runs[r]
			for i := range run.Steps {
				e := Entry{Item: it, Run: run.Name, Step: layout.Name(run.Plan.Steps[i].Name), N: i}
				if !want(e) {
					continue
				}
				if it.ready(run, i, now) {
					ready = append(ready, e)
				} else if it.Waits(run, i) {
					waits = append(waits, e)
				}
			}
		}
	}
	slices.SortFunc(ready, Entry.compare)
	slices.SortFunc(waits, Entry.compare)
	return ready, waits
}

type dated struct {
	at    time.Time
	entry Entry
}

type dateHeap []dated

func (h dateHeap) Len() int           { return len(h) }
func (h dateHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dateHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dateHeap) Push(v any)        { *h = append(*h, v.(dated)) }
func (h *dateHeap) Pop() any {
	old := *h
	d := old[len(old)-1]
	*h = old[:len(old)-1]
	return d
}
