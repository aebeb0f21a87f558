package queue

import (
	"sync"
	"time"

	"bagpipe/engine/queue/internal/groups"
	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/queue/internal/turns"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// SetBatch tells the index whether a batch is closed: nothing is added to it any
// more.
func (i *Index) SetBatch(name string, closed bool) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.others.SetBatch(name, closed) {
		x.signal()
	}
}

// again lays over an item what others make of it as they are now.
func (x *store) again(id layout.ItemID) {
	if it := x.item(id); it != nil {
		x.replace(it)
	}
}

// Read fills an empty index from a checkpoint, whose bytes it keeps, and gives the
// tree that it was derived from; Fill has to follow. It is an ErrCheckpoint when it is
// damaged, of other facets, or of a definition that plans does not find; the index
// is of no use then.
func (i *Index) Read(data []byte, facets []string, plans func(digest string) *state.Definition) (tree string, err error) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	return packed.Restore(data, &x.table, x.names, facets, plans)
}

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

// Index holds all items, packed, and what of them is ready. Its own methods change it;
// its View asks, and can be handed out without them.
type Index struct{ View }

// store is what an index knows. Methods that begin with a small letter want mu locked.
type store struct {
	mu    sync.Mutex // guards all below
	names *packed.Names
	table packed.Table
	count counts
	queues
	handed
	marked
	others *groups.Groups
	scratch
	wake chan struct{}
}

// queues are the steps that are ready, or will be at a time.
type queues struct {
	ready    map[readyKey]*turns.Tree // may hold entries that are no longer true; Take looks again
	accounts turns.Account
	dated    turns.Heap[dated] // steps whose time is to come
	order    *ordered          // what Take hands out by; nil: lanes and turns
	lanes    Lanes
}

// handed is what was handed out, and what may be.
type handed struct {
	taken  map[slot]bool                          // handed out, and not returned
	claims map[slot]claimed                       // handed out, and not in progress yet
	only   func(Entry) (is bool, again time.Time) // what may be handed out; nil: everything
	limits Limits
}

// marked are items by what is asked often, with their creation in ms.
type marked struct {
	runs   map[uint64]bool  // a step is in progress
	people map[uint64]int64 // a step waits for a person
	off    map[uint64]int64 // a step is out of the flow
}

// scratch is room to look at items in.
type scratch struct {
	was, is, at packed.Outline
	buf         []byte
}

// New makes an empty index.
func New() *Index {
	x := &store{
		names: packed.NewNames(), count: newCounts(), wake: make(chan struct{}, 1),
		queues: queues{ready: map[readyKey]*turns.Tree{}},
		handed: handed{taken: map[slot]bool{}, claims: map[slot]claimed{}},
		marked: newMarked(),
	}
	x.others = groups.New(itemsOf{x})
	return &Index{View{x}}
}

// itemsOf is an index as it is known to what items make of one another.
type itemsOf struct{ x *store }

func (i itemsOf) Item(id layout.ItemID) *Item { return i.x.item(id) }

func (i itemsOf) Again(id layout.ItemID) { i.x.again(id) }

func (i itemsOf) Rank(lane layout.Name) int { return i.x.rank(lane) }

func newMarked() marked {
	return marked{runs: map[uint64]bool{}, people: map[uint64]int64{}, off: map[uint64]int64{}}
}

// Wake receives after the index changed; several changes may make one wake.
func (i *Index) Wake() <-chan struct{} { return i.s.wake }

// Only keeps the index from handing out, or waiting for, anything else than what
// want says; again is when it may say otherwise though the item has not changed.
// The lists are not narrowed by it.
func (i *Index) Only(want func(Entry) (is bool, again time.Time)) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	x.only = want
}

// Put replaces what the index knows of an item.
func (i *Index) Put(it *Item) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	x.put(it)
	x.signal()
}

func (x *store) put(it *Item) {
	was := x.related(it.ID)
	x.others.Change(was, it)
	x.replace(it)
	x.others.Tell(it)
}

// related gives an item that others know of; nil otherwise.
func (x *store) related(id layout.ItemID) *Item {
	if b := x.table.Get(packed.BitsOf(id)); b != nil && packed.TraitsOf(b)&(Gathered|Kin|Broken) != 0 {
		return x.item(id)
	}
	return nil
}

// item gives a copy of an item; nil when there is none.
func (x *store) item(id layout.ItemID) *Item {
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
func (x *store) replace(it *Item) {
	x.others.Overlay(it)
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
func (x *store) offer(bits uint64, was, is *packed.Outline) {
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
func (x *store) enter(s slot, g *packed.Outline, run *packed.OutlineRun, until int64) {
	e := turns.Entry{Created: g.Created, Item: s.item, Run: s.run, Place: g.Place(run), N: s.n}
	if until != 0 {
		x.dated.Push(dated{at: until, entry: e})
		return
	}
	x.push(e, x.keyOf(g, run, int(s.n)), standsAt(g))
}

func (x *store) push(e turns.Entry, key readyKey, p turns.Place) {
	x.pushReady(e, key, p)
	if x.order != nil {
		x.pushOrdered(e, key, p)
	}
}

func (x *store) pushReady(e turns.Entry, key readyKey, p turns.Place) {
	x.tree(key).Push(e, p, x.lane)
}

// pushAll puts many entries in one place.
func (x *store) pushAll(entries []turns.Entry, key readyKey, p turns.Place) {
	x.tree(key).PushAll(entries, p, x.lane)
	if x.order != nil {
		for _, e := range entries {
			x.pushOrdered(e, key, p)
		}
	}
}

// tree finds, or begins, the tree of what is ready of a key.
func (x *store) tree(key readyKey) *turns.Tree {
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

func (x *store) signal() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Nudge wakes who waits for the index, though nothing in it has changed.
func (i *Index) Nudge() { i.s.signal() }

// Remove forgets an item.
func (i *Index) Remove(id layout.ItemID) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	if was := x.related(id); was != nil {
		x.others.Change(was, nil)
		defer x.others.Tell(was)
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

// Return ends a Take: the step has another status by now, or, if it was not
// claimed after all, is handed out again.
func (i *Index) Return(e Entry) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.slotOf(e)
	delete(x.taken, s)
	x.unclaim(s)
	x.offerAgain(s)
	x.signal()
}

func (x *store) slotOf(e Entry) slot {
	return slot{packed.BitsOf(e.Item.ID), uint32(x.names.Number(e.Run)), uint16(e.N)}
}

// offerAgain puts a step where it belongs that may stand nowhere, though it could.
func (x *store) offerAgain(s slot) {
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
