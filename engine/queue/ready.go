package queue

import (
	"slices"
	"time"

	"bagpipe/engine/queue/internal/turns"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Limits bound what is under way at once in the workspace, by the committed states
// and what this process is about to claim. An item is in flight from its first
// claimed step until its workflow ends, fails, or waits alone for a person, a date,
// another workflow of it, or other items, which the limit must let through: its batch,
// its children. What a person lets go on is in flight again from its next claim, so
// that a thousand retries do not pass the limit. 0 is any number; nil functions are no
// limits.
type Limits struct {
	InFlight   int                   // items, of all workflows
	Collection func(layout.Name) int // items in flight of one collection
}

// Lanes are the lanes, the most urgent first. Without weights each gets a take for
// every twenty of the one before it; with them, lanes share by weight. A lane that
// is not listed comes last.
type Lanes struct {
	Names   []layout.Name
	Weights map[layout.Name]float64
}

// laneShare is how many takes of a lane there are for one of the next.
const laneShare = 20

// readyKey tells the queues of ready steps apart: one for each step, and one for
// items that are in flight already, which limits on items do not hold back.
type readyKey struct {
	StepID
	flying bool
}

// SetLimits replaces the limits in force.
func (i *Index) SetLimits(l Limits) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	x.limits = l
	x.signal()
}

// SetLanes replaces the lanes; what is ready is put in order anew.
func (i *Index) SetLanes(l Lanes) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	same := slices.Equal(l.Names, x.lanes.Names) && len(l.Weights) == len(x.lanes.Weights)
	for k, w := range l.Weights {
		same = same && x.lanes.Weights[k] == w
	}
	if same {
		return
	}
	x.lanes = l
	x.others.Rerank()
	x.rebuild(func(turns.Entry, readyKey, turns.Place) bool { return true })
	x.signal()
}

// rebuild puts what is ready into its queues anew, as far as keep wants it.
func (x *store) rebuild(keep func(turns.Entry, readyKey, turns.Place) bool) {
	type standing struct {
		turns.Entry
		readyKey
		turns.Place
	}
	var all []standing
	x.eachReady(func(e turns.Entry, key readyKey, p turns.Place) {
		if keep(e, key, p) {
			all = append(all, standing{e, key, p})
		}
	})
	x.accounts, x.ready = turns.Account{}, map[readyKey]*turns.Tree{}
	for _, s := range all {
		x.pushReady(s.Entry, s.readyKey, s.Place)
	}
}

// lane gives a lane's place, and how far a take moves its turn on.
func (x *store) lane(number uint64) (rank int, stride float64) {
	name := layout.Name(x.names.Text(number))
	rank = x.rank(name)
	if len(x.lanes.Weights) > 0 {
		w := x.lanes.Weights[name]
		if w <= 0 {
			w = 1
		}
		return rank, 1 / w
	}
	stride = 1
	for range min(rank, 6) {
		stride *= laneShare
	}
	return rank, stride
}

// rank is a lane's place.
func (x *store) rank(name layout.Name) int {
	if rank := slices.Index(x.lanes.Names, name); rank >= 0 {
		return rank
	}
	return len(x.lanes.Names)
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
	var way turns.Way
	var from readyKey
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
	if !ok {
		return Entry{}, false, limited
	}
	root := x.ready[from]
	_, stride := x.lane(way.Lane())
	return x.handOut(root.Take(way, stride), from), true, false
}

// handOut notes that an entry was taken.
func (x *store) handOut(took turns.Entry, from readyKey) Entry {
	full, _ := x.entryOf(took) // it was there a moment ago
	s := slot{took.Item, took.Run, took.N}
	x.taken[s] = true
	x.claim(s, from, full.Item.Collection)
	return full
}

// keep tells whether an entry may stay in its queue; one that Only may let through
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

func over(n, limit int) bool { return limit > 0 && n >= limit }

// stepFull tells whether a limit of the workspace, but for those of collections,
// holds the step back.
func (x *store) stepFull(key readyKey, next turns.Entry) bool {
	plan, n := x.planOf(next)
	_, is := x.full(key, plan, n)
	return is
}

// full says which limit of the workspace holds a step back.
func (x *store) full(key readyKey, plan *state.Definition, n int) (by limiting, is bool) {
	f := &x.count.flights
	switch {
	case over(f.steps[key.StepID], plan.Steps[n].Limit):
		return limiting{text: limitText("step "+key.String(), f.steps[key.StepID], plan.Steps[n].Limit, "limit: of the step"), step: key.StepID}, true
	case key.flying:
		return by, false
	case over(f.workflows[plan.Name], plan.InFlight):
		return limiting{text: limitText("workflow "+plan.Name, f.workflows[plan.Name], plan.InFlight, "inFlight: of the workflow"), workflow: plan.Name}, true
	case over(f.all, x.limits.InFlight):
		return limiting{text: limitText("the workspace", f.all, x.limits.InFlight, "limits: inFlight: in bagpipe.yaml")}, true
	}
	return by, false
}

// collectionFull tells whether a collection's own limit holds back items that are
// not in flight.
func (x *store) collectionFull(key readyKey, name layout.Name) bool {
	return !key.flying && x.limits.Collection != nil && over(x.count.flights.collections[name], x.limits.Collection(name))
}

// Overtaken tells whether a step that was handed out passes a limit of the workspace
// by now, because of what others committed since. It counts itself; what this process
// claims alone never passes one, as Take saw to that.
func (i *Index) Overtaken(e Entry) bool {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	c, there := x.claims[x.slotOf(e)]
	if !there {
		return false // in progress already, which its claim will find
	}
	over := func(n, limit int) bool { return limit > 0 && n > limit }
	plan, f := e.plan(), &x.count.flights
	if plan == nil || over(f.steps[c.StepID], plan.Steps[e.N].Limit) {
		return plan != nil
	}
	return !c.flying && (over(f.workflows[c.Workflow], plan.InFlight) || over(f.all, x.limits.InFlight) ||
		x.limits.Collection != nil && over(f.collections[c.collection], x.limits.Collection(c.collection)))
}

// claim counts a step that was handed out and is not committed as in progress yet,
// so that a limit is not passed meanwhile; unclaim ends that.
func (x *store) claim(s slot, key readyKey, collection layout.Name) {
	c := claimed{key, collection}
	x.claims[s] = c
	x.count.flights.claimed(c, 1)
}

func (x *store) unclaim(s slot) {
	if len(x.claims) == 0 {
		return
	}
	if c, there := x.claims[s]; there {
		delete(x.claims, s)
		x.count.flights.claimed(c, -1)
	}
}

// claimed is how a step was counted when it was handed out.
type claimed struct {
	readyKey
	collection layout.Name
}

// ID names the entry's step.
func (e Entry) ID() StepID {
	if plan := e.plan(); plan != nil {
		return StepID{Workflow: plan.Name, Step: e.Step}
	}
	return StepID{Step: e.Step}
}

// plan is the definition that the entry's run goes by; nil: the item has no such run.
func (e Entry) plan() *state.Definition {
	if run := e.Item.Run(e.Run); run != nil {
		return run.Plan
	}
	return nil
}
