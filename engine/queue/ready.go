package queue

import (
	"cmp"
	"container/heap"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// StepID names a step of a workflow, whatever the item and the instance.
type StepID struct {
	Workflow string
	Step     layout.Name
}

func (s StepID) String() string { return s.Workflow + "/" + string(s.Step) }

// Limits bound what is under way at once in the workspace, by the committed states
// and what this process is about to claim. An item is in flight from its first
// claimed step until its workflow ends, fails, or waits for a person. 0 is any
// number; nil functions are no limits.
type Limits struct {
	InFlight   int                   // items, of all workflows
	Collection func(layout.Name) int // items in flight of one collection
}

// readyKey tells the queues of ready steps apart: one for each step, and one for
// items that are in flight already, which limits on items do not hold back.
type readyKey struct {
	StepID
	flying bool
}

// flights counts what limits are compared with.
type flights struct {
	steps       map[StepID]int
	workflows   map[string]int
	collections map[layout.Name]int
	all         int
}

func newFlights() flights {
	return flights{steps: map[StepID]int{}, workflows: map[string]int{}, collections: map[layout.Name]int{}}
}

// add counts an item n times: 1 when it comes, -1 when it goes.
func (f *flights) add(it *Item, n int) {
	flying := false
	for r := range it.Runs {
		run := &it.Runs[r]
		name := run.Plan.Name
		for i := range run.Steps {
			if run.Steps[i].Status == state.InProgress {
				f.steps[StepID{name, layout.Name(run.Plan.Steps[i].Name)}] += n
			}
		}
		if it.flies(run) {
			flying = true
			f.workflows[name] += n
		}
	}
	if flying {
		f.collections[it.Collection] += n
		f.all += n
	}
}

// flies tells whether a run of the item is in flight.
func (it *Item) flies(run *Run) bool {
	if it.Broken != "" || it.Held || run.Status != state.InProgress {
		return false
	}
	begun := false
	for i := range run.Steps {
		if it.Waits(run, i) || run.Steps[i].barredBy(childrenCode) {
			return false
		}
		begun = begun || i > 0 && run.Steps[i].Attempts > 0
	}
	return begun
}

// SetLimits replaces the limits in force.
func (x *Index) SetLimits(l Limits) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.limits = l
	x.signal()
}

// Take hands out the best of the ready steps that may, which is asked by step, lets
// through (nil: all) and no limit holds back; it is not handed out again until
// Return. It takes O(log n), and looks once at each step's queue. limited tells
// that there was one but for a limit of the workspace.
func (x *Index) Take(now time.Time, may func(StepID, *state.Step) bool) (e Entry, ok, limited bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.dated) > 0 && !now.Before(x.dated[0].at) {
		x.push(heap.Pop(&x.dated).(dated).entry)
	}
	var best Entry
	var from readyKey
	for key := range x.ready {
		head, there := x.head(key, now)
		switch {
		case !there:
			delete(x.ready, key)
		case may != nil && !may(key.StepID, head.step()):
		case x.full(key, head):
			limited = true
		case !ok || head.compare(best) < 0:
			best, from, ok = head, key, true
		}
	}
	if !ok {
		return Entry{}, false, limited
	}
	heap.Pop(x.ready[from])
	delete(x.queued, best.key())
	x.taken[best.key()] = true
	x.claim(best)
	return best, true, false
}

// head gives the first step of a queue that still is ready and belongs there,
// dropping or moving those that are not.
func (x *Index) head(key readyKey, now time.Time) (Entry, bool) {
	h := x.ready[key]
	for len(*h) > 0 {
		e, ready := x.stillReady((*h)[0], now)
		if ready && !x.taken[e.key()] && x.readyKey(e) == key {
			return e, true
		}
		heap.Pop(h)
		if x.queued[e.key()] == key {
			delete(x.queued, e.key())
		}
		if ready && !x.taken[e.key()] {
			x.push(e)
		}
	}
	return Entry{}, false
}

func (e Entry) run() *Run {
	for r := range e.Item.Runs {
		if run := &e.Item.Runs[r]; run.Name == e.Run {
			return run
		}
	}
	return nil
}

func (e Entry) step() *state.Step { return &e.run().Plan.Steps[e.N] }

// ID names the entry's step.
func (e Entry) ID() StepID { return StepID{e.run().Plan.Name, e.Step} }

func (x *Index) readyKey(e Entry) readyKey {
	run := e.run()
	return readyKey{StepID{run.Plan.Name, e.Step}, e.Item.flies(run)}
}

// full tells whether a limit of the workspace holds the step back.
func (x *Index) full(key readyKey, e Entry) bool {
	over := func(n, limit int) bool { return limit > 0 && n >= limit }
	plan := e.run().Plan
	if over(x.count.steps[key.StepID], plan.Steps[e.N].Limit) {
		return true
	}
	if key.flying {
		return false
	}
	return over(x.count.workflows[plan.Name], plan.InFlight) || over(x.count.all, x.limits.InFlight) ||
		x.limits.Collection != nil && over(x.count.collections[e.Item.Collection], x.limits.Collection(e.Item.Collection))
}

// Overtaken tells whether a step that was handed out passes a limit of the workspace
// by now, because of what others committed since. It counts itself; what this process
// claims alone never passes one, as Take saw to that.
func (x *Index) Overtaken(e Entry) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	c, there := x.claims[e.key()]
	if !there {
		return false // in progress already, which its claim will find
	}
	over := func(n, limit int) bool { return limit > 0 && n > limit }
	plan := e.run().Plan
	if over(x.count.steps[c.StepID], plan.Steps[e.N].Limit) {
		return true
	}
	return !c.flying && (over(x.count.workflows[c.Workflow], plan.InFlight) || over(x.count.all, x.limits.InFlight) ||
		x.limits.Collection != nil && over(x.count.collections[c.collection], x.limits.Collection(c.collection)))
}

// claim counts a step that was handed out and is not committed as in progress yet,
// so that a limit is not passed meanwhile; unclaim ends that.
func (x *Index) claim(e Entry) {
	c := claimed{x.readyKey(e), e.Item.Collection}
	x.claims[e.key()] = c
	x.count.claimed(c, 1)
}

func (x *Index) unclaim(k key) {
	if c, there := x.claims[k]; there {
		delete(x.claims, k)
		x.count.claimed(c, -1)
	}
}

func (f *flights) claimed(c claimed, n int) {
	f.steps[c.StepID] += n
	if !c.flying {
		f.workflows[c.Workflow] += n
		f.collections[c.collection] += n
		f.all += n
	}
}

// claimed is how a step was counted when it was handed out.
type claimed struct {
	readyKey
	collection layout.Name
}

// Ahead tells how many items have a step that runs, or can be expected to run
// without a person.
func (x *Index) Ahead() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ahead
}

// entryHeap is one step's ready items, the first to be done on top.
type entryHeap []Entry

func (h entryHeap) Len() int           { return len(h) }
func (h entryHeap) Less(i, j int) bool { return h[i].compare(h[j]) < 0 }
func (h entryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *entryHeap) Push(v any)        { *h = append(*h, v.(Entry)) }
func (h *entryHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

func (e Entry) compare(o Entry) int {
	return cmp.Or(
		cmp.Compare(e.Item.Rank, o.Item.Rank),
		e.Item.Created.Compare(o.Item.Created),
		cmp.Compare(e.Item.ID, o.Item.ID),
		cmp.Compare(e.Run, o.Run),
		cmp.Compare(e.N, o.N),
	)
}
