package queue

import (
	"time"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/queue/internal/turns"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Return ends a Take: the step has another status by now, or, if it was not
// claimed after all, is handed out again.
func (i *Index) Return(e Entry) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.slotOf(e)
	delete(x.taken, s)
	x.unclaim(s)
	x.others.Hand(e.Item, -1)
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

// Take hands out the next of the ready steps that may, which is asked by step, lets
// through (nil: all) and no limit holds back; it is not handed out again until
// Return. It takes O(log n), and looks once at each step's queue. limited tells
// that there was one but for a limit of the workspace.
func (i *Index) Take(now time.Time, may func(StepID, *state.Step) bool) (e Entry, ok, limited bool) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle(now)
	if x.order != nil {
		return x.takeOrdered(now, may)
	}
	way, from, ok, limited := best(x, now, may)
	if !ok {
		return Entry{}, false, limited
	}
	return handOutOf(x, way, from), true, false
}

// TakeNext hands out step n of the run of an entry that is handed out and about to end, as if it
// were ready already, if Take would hand it out next. One that does not wait for steps of its
// workflow is left to Take, as is all of an index with an order of its own or an Only. may is
// that of Take.
func (i *Index) TakeNext(now time.Time, e Entry, n int, may func(StepID, *state.Step) bool) (next Entry, ok bool) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	s := slot{packed.BitsOf(e.Item.ID), uint32(x.names.Number(e.Run)), uint16(n)}
	b := x.table.Get(s.item)
	if x.order != nil || x.only != nil || b == nil || x.taken[s] {
		return next, false
	}
	x.settle(now)
	x.at.Read(b)
	run := x.at.Run(uint64(s.run))
	if run == nil || n >= run.To-run.From || !x.at.Awaits(run, n) {
		return next, false
	}
	x.enter(s, &x.at, run, 0)
	x.early = &s
	way, from, ok, _ := best(x, now, may)
	x.early = nil
	if !ok || way.Entry().Item != s.item || way.Entry().Run != s.run || way.Entry().N != s.n { // what was entered is found untrue by Take
		return next, false
	}
	return handOutOf(x, way, from), true
}

// best finds what Take hands out, by lanes and turns.
func best(x *store, now time.Time, may func(StepID, *state.Step) bool) (way turns.Way, from readyKey, ok, limited bool) {
	for key, root := range x.ready {
		keep := func(e turns.Entry, p turns.Place) bool { return x.keep(e, key, p, now) }
		held := false
		w, there := root.Best(keep, func(p turns.Place) bool {
			full := x.collectionFull(key, layout.Name(x.names.Text(p.Collection)))
			held = held || full
			return full
		})
		switch {
		case !there:
			limited = limited || held
			if root.Empty() {
				delete(x.ready, key)
			}
		case !x.may(w.Entry(), may):
		case x.stepFull(key, w.Entry()):
			limited = true
		case !ok || turns.Before(w, way):
			way, from, ok = w, key, true
		}
	}
	return way, from, ok, limited
}

func handOutOf(x *store, way turns.Way, from readyKey) Entry {
	_, stride := x.lane(way.Lane())
	return x.handOut(x.ready[from].Take(way, stride), from)
}

// handOut notes that an entry was taken.
func (x *store) handOut(took turns.Entry, from readyKey) Entry {
	full, _ := x.entryOf(took) // it was there a moment ago
	s := slot{took.Item, took.Run, took.N}
	x.taken[s] = true
	x.claim(s, from, full.Item.Collection)
	x.others.Hand(full.Item, 1)
	return full
}

// keep reports whether an entry may stay in its queue; one that Only may let through
// later is put down for then.
func (x *store) keep(e turns.Entry, key readyKey, p turns.Place, now time.Time) bool {
	if !x.stillReady(e, key, p, now) {
		return false
	}
	if x.only == nil {
		return true
	}
	full, ok := x.entryOf(e)
	if !ok {
		return false
	}
	is, again := x.only(full)
	if !is && !again.IsZero() {
		x.dated.Push(dated{at: again.UnixMilli() + 1, entry: e, asked: true})
	}
	return is
}

// may asks by the step of the entry that is next.
func (x *store) may(next turns.Entry, may func(StepID, *state.Step) bool) bool {
	if may == nil {
		return true
	}
	plan, n := x.planOf(next)
	return may(StepID{Workflow: plan.Name, Step: layout.Name(plan.Steps[n].Name)}, &plan.Steps[n])
}

// planOf gives the definition of an entry that is still ready.
func (x *store) planOf(e turns.Entry) (*state.Definition, int) {
	x.at.Read(x.table.Get(e.Item))
	return x.names.Plan(x.at.Run(uint64(e.Run)).Plan), int(e.N)
}

// keyOf names the queue of a ready step.
func (x *store) keyOf(g *packed.Outline, run *packed.OutlineRun, n int) readyKey {
	plan := x.names.Plan(run.Plan)
	return readyKey{StepID{Workflow: plan.Name, Step: layout.Name(plan.Steps[n].Name)}, g.Flies(run)}
}

// stillReady reports whether an entry is what it was pushed as: of a step that is ready
// at now, that nobody has taken, and that belongs to that queue and place. Others
// were pushed again elsewhere.
func (x *store) stillReady(e turns.Entry, key readyKey, p turns.Place, now time.Time) bool {
	b := x.table.Get(e.Item)
	if b == nil || x.taken[slot{e.Item, e.Run, e.N}] {
		return false
	}
	x.at.Read(b)
	run := x.at.Run(uint64(e.Run))
	if run == nil || int(e.N) >= run.To-run.From || standsAt(&x.at) != p || x.keyOf(&x.at, run, int(e.N)) != key {
		return false
	}
	if x.early != nil && *x.early == (slot{e.Item, e.Run, e.N}) {
		return true
	}
	how, until := x.at.Standing(run, int(e.N))
	return how == packed.StandsReady || how == packed.StandsDated && until <= now.UnixMilli()
}
