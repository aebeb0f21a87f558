package queue

import (
	"iter"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/queue/internal/turns"
	"bagpipe/layout"
)

// Entry is one step of one item that is ready, or would be but for a person.
type Entry struct {
	Item *Item
	Run  string // accession.1
	Step layout.Name
	N    int // the step's place in the definition

	Since time.Time // of a brief one: since when the step stands as it does
}

// slot names a step of an item in few bytes.
type slot struct {
	item uint64
	run  uint32 // the number of its name
	n    uint16
}

// Index holds all items, packed, and what of them is ready.
type Index struct {
	mu       sync.Mutex // guards all below
	names    *packed.Names
	table    packed.Table
	ready    map[readyKey]*turns.Tree // may hold entries that are no longer true; Take looks again
	accounts turns.Account
	dated    turns.Heap[dated] // steps whose time is to come
	taken    map[slot]bool     // handed out, and not returned
	runs     map[uint64]bool
	people   map[uint64]int64                       // items of which a step waits for a person, and their creation in ms
	off      map[uint64]int64                       // those of which a step is out of the flow
	only     func(Entry) (is bool, again time.Time) // what may be handed out; nil: everything
	order    *ordered                               // what Take hands out by; nil: lanes and turns
	wake     chan struct{}

	limits Limits
	lanes  Lanes
	count  counts
	claims map[slot]claimed // handed out, and not in progress yet

	batches  batches
	families families

	was, is, at packed.Outline // to look at items with
	buf         []byte
}

// New makes an empty index.
func New() *Index {
	return &Index{
		names: packed.NewNames(), taken: map[slot]bool{}, runs: map[uint64]bool{}, people: map[uint64]int64{}, off: map[uint64]int64{}, wake: make(chan struct{}, 1),
		ready: map[readyKey]*turns.Tree{}, count: newCounts(), claims: map[slot]claimed{}, batches: newBatches(), families: newFamilies(),
	}
}

// Wake receives after the index changed; several changes may make one wake.
func (x *Index) Wake() <-chan struct{} { return x.wake }

// Only keeps the index from handing out, or waiting for, anything else than what
// want says; again is when it may say otherwise though the item has not changed.
// The lists are not narrowed by it.
func (x *Index) Only(want func(Entry) (is bool, again time.Time)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.only = want
}

// Put replaces what the index knows of an item.
func (x *Index) Put(it *Item) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.put(it)
	x.signal()
}

func (x *Index) put(it *Item) {
	was := x.related(it.ID)
	if was != nil {
		x.gather(was, false)
	}
	x.gather(it, true)
	x.join(was, it)
	x.replace(it)
	x.tellBatch(it.Batch)
	x.tellFamilies(it)
}

// related gives an item that others know of; nil otherwise.
func (x *Index) related(id layout.ItemID) *Item {
	if b := x.table.Get(packed.BitsOf(id)); b != nil && packed.TraitsOf(b)&(Gathered|Kin|Broken) != 0 {
		return x.item(id)
	}
	return nil
}

// item gives a copy of an item; nil when there is none.
func (x *Index) item(id layout.ItemID) *Item {
	b := x.table.Get(packed.BitsOf(id))
	if b == nil {
		return nil
	}
	it, ok := packed.Unpack(b, x.names, id)
	if !ok {
		panic("queue: item " + string(id) + " cannot be unpacked") // it was packed here, or checked
	}
	return it
}

// replace puts an item in the place of what it was.
func (x *Index) replace(it *Item) {
	x.overlay(it)
	bits := packed.BitsOf(it.ID)
	x.was.Clear()
	if b := x.table.Get(bits); b != nil {
		x.was.Read(b)
		x.count.add(x.names, &x.was, -1)
	}
	x.buf = packed.Pack(x.buf[:0], x.names, it)
	x.is.Read(x.buf)
	x.count.add(x.names, &x.is, 1)
	x.table.Put(bits, x.buf)
	if delete(x.runs, bits); x.is.Traits&Running != 0 {
		x.runs[bits] = true
	}
	if delete(x.people, bits); x.is.Traits&Person != 0 {
		x.people[bits] = x.is.Created
	}
	if delete(x.off, bits); x.is.Traits&Off != 0 {
		x.off[bits] = x.is.Created
	}
	x.offer(bits, &x.was, &x.is)
}

// offer puts the steps of an item where they belong, unless they stand there.
func (x *Index) offer(bits uint64, was, is *packed.Outline) {
	for r := range is.Runs {
		run := &is.Runs[r]
		before := was.Run(run.Name)
		flying := is.Flies(run)
		for i := range run.To - run.From {
			how, until := is.Standing(run, i)
			s := slot{bits, uint32(run.Name), uint16(i)}
			if is.Steps[run.From+i].Status == packed.StatusInProgress {
				x.unclaim(s)
			}
			if how == packed.StandsNowhere {
				continue
			}
			// What Only does not want has been dropped, and may be wanted now; what has
			// other values has another place in an order.
			if x.only == nil && x.order == nil && before != nil && i < before.To-before.From && before.Plan == run.Plan {
				whenBefore, untilBefore := was.Standing(before, i)
				if whenBefore == how && untilBefore == until && was.Flies(before) == flying && standsAt(was) == standsAt(is) {
					continue
				}
			}
			x.enter(s, is, run, until)
		}
	}
}

// enter puts a step that is ready, or will be, where it belongs.
func (x *Index) enter(s slot, g *packed.Outline, run *packed.OutlineRun, until int64) {
	e := turns.Entry{Created: g.Created, Item: s.item, Run: s.run, Place: g.Place(run), N: s.n}
	if until != 0 {
		x.dated.Push(dated{at: until, entry: e})
		return
	}
	x.push(e, x.keyOf(g, run, int(s.n)), standsAt(g))
}

func (x *Index) push(e turns.Entry, key readyKey, p turns.Place) {
	x.pushReady(e, key, p)
	if x.order != nil {
		x.pushOrdered(e, key, p)
	}
}

func (x *Index) pushReady(e turns.Entry, key readyKey, p turns.Place) {
	x.tree(key).Push(e, p, x.lane)
}

// pushAll puts many entries in one place.
func (x *Index) pushAll(entries []turns.Entry, key readyKey, p turns.Place) {
	x.tree(key).PushAll(entries, p, x.lane)
	if x.order != nil {
		for _, e := range entries {
			x.pushOrdered(e, key, p)
		}
	}
}

// tree finds, or begins, the tree of what is ready of a key.
func (x *Index) tree(key readyKey) *turns.Tree {
	of := x.ready[key]
	if of == nil {
		of = turns.New(&x.accounts)
		x.ready[key] = of
	}
	return of
}

// standsAt is where the entries of an item stand.
func standsAt(g *packed.Outline) turns.Place {
	return turns.Place{Lane: g.Lane, Collection: g.Collection, Batch: g.Batch}
}

func (x *Index) signal() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Nudge wakes who waits for the index, though nothing in it has changed.
func (x *Index) Nudge() { x.signal() }

// Remove forgets an item.
func (x *Index) Remove(id layout.ItemID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if was := x.related(id); was != nil {
		x.gather(was, false)
		x.join(was, nil)
		defer func() { x.tellBatch(was.Batch); x.tellFamilies(was) }()
	}
	bits := packed.BitsOf(id)
	if b := x.table.Get(bits); b != nil {
		x.was.Read(b)
		x.count.add(x.names, &x.was, -1)
		x.table.Remove(bits)
	}
	delete(x.runs, bits)
	delete(x.people, bits)
	delete(x.off, bits)
}

// Running gives the items that have a step in progress, in no order.
func (x *Index) Running() []*Item {
	x.mu.Lock()
	defer x.mu.Unlock()
	items := make([]*Item, 0, len(x.runs))
	for bits := range x.runs {
		items = append(items, x.item(layout.ItemIDOf(bits)))
	}
	return items
}

// Open is the number of steps that wait or run and can be expected to be done
// without a person.
func (x *Index) Open() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.count.open
}

// Return ends a Take: the step has another status by now, or, if it was not
// claimed after all, is handed out again.
func (x *Index) Return(e Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.slotOf(e)
	delete(x.taken, s)
	x.unclaim(s)
	x.offerAgain(s)
	x.signal()
}

func (x *Index) slotOf(e Entry) slot {
	return slot{packed.BitsOf(e.Item.ID), uint32(x.names.Number(e.Run)), uint16(e.N)}
}

// offerAgain puts a step where it belongs that may stand nowhere, though it could.
func (x *Index) offerAgain(s slot) {
	b := x.table.Get(s.item)
	if b == nil {
		return
	}
	x.at.Read(b)
	run := x.at.Run(uint64(s.run))
	if run == nil || int(s.n) >= run.To-run.From {
		return
	}
	if how, until := x.at.Standing(run, int(s.n)); how != packed.StandsNowhere {
		x.enter(s, &x.at, run, until)
	}
}

// Len is the number of items.
func (x *Index) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.count.items
}

// Item finds one item; nil when there is none. It is a copy.
func (x *Index) Item(id layout.ItemID) *Item {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.item(id)
}

// Items gives all items, oldest first. They are copies.
func (x *Index) Items() iter.Seq[*Item] { return x.With(0) }

// With gives the items that have one of the traits, oldest first, children that
// were made in the same instant by their names; 0: all. They are copies, each made when it is come to: one that changes meanwhile is
// given as it is then.
func (x *Index) With(any Trait) iter.Seq[*Item] {
	x.mu.Lock()
	type found struct {
		aged
		kin bool
	}
	var all []found
	if any == 0 {
		all = make([]found, 0, x.count.items)
	}
	x.table.Each(0, packed.Pages, func(bits uint64, b []byte) {
		t := packed.TraitsOf(b)
		if any == 0 || t&any != 0 {
			all = append(all, found{aged{packed.CreatedOf(b), bits}, t&Kin != 0})
		}
	})
	x.mu.Unlock()
	slices.SortFunc(all, func(a, b found) int {
		if a.created == b.created && a.kin != b.kin {
			return map[bool]int{false: -1, true: 1}[a.kin]
		}
		return a.Compare(b.aged)
	})
	return func(yield func(*Item) bool) {
		var same []aged
		for i, f := range all {
			same = append(same, f.aged)
			if i+1 < len(all) && f.kin && all[i+1].kin && all[i+1].created == f.created {
				continue
			}
			if !x.yieldSame(same, yield) {
				return
			}
			same = same[:0]
		}
	}
}

// yieldSame gives items that were made in the same millisecond.
func (x *Index) yieldSame(same []aged, yield func(*Item) bool) bool {
	if len(same) == 1 {
		it := x.Item(layout.ItemIDOf(same[0].item))
		return it == nil || yield(it)
	}
	items := make([]*Item, 0, len(same))
	for _, f := range same {
		if it := x.Item(layout.ItemIDOf(f.item)); it != nil {
			items = append(items, it)
		}
	}
	slices.SortStableFunc(items, packed.CompareAge)
	for _, it := range items {
		if !yield(it) {
			return false
		}
	}
	return true
}
