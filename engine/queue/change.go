package queue

import (
	"time"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/queue/internal/turns"
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

// Narrowed reports whether Only keeps something from being handed out.
func (i *Index) Narrowed() bool {
	i.s.mu.Lock()
	defer i.s.mu.Unlock()
	return i.s.only != nil
}

// Put replaces what the index knows of an item.
func (i *Index) Put(it *Item) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	x.put(it)
	x.signal()
}

// Remove forgets an item.
func (i *Index) Remove(id layout.ItemID) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	bits := packed.BitsOf(id)
	if x.table.Get(bits) == nil {
		return
	}
	x.put(&Item{ID: id}) // nothing of it waits, runs, or concerns others
	x.was.Clear()
	x.was.Read(x.table.Get(bits))
	x.count.add(x.names, &x.was, -1)
	x.table.Remove(bits)
	x.signal()
}

func (x *store) put(it *Item) {
	was := x.related(it.ID)
	x.others.Change(was, it)
	x.replace(it)
	x.others.Tell(it)
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
