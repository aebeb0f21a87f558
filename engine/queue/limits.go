package queue

import (
	"fmt"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/queue/internal/turns"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

func limitText(what string, n, limit int, key string) string {
	return fmt.Sprintf("%s has %d under way, and %s lets %d", what, n, key, limit)
}

// limiting is a limit that holds a step back, and what counts for it.
type limiting struct {
	text       string
	step       StepID      // items of which it is in progress; none: those in flight,
	workflow   string      // all of them, or of one workflow,
	collection layout.Name // or of one collection
}

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

	// Step is how many attempts at a step there may be; nil: what its definition says.
	Step func(workflow string, s *state.Step) int
}

// step is the limit of step n.
func (l *Limits) step(plan *state.Definition, n int) int {
	if l.Step == nil {
		return plan.Steps[n].Limit
	}
	return l.Step(plan.Name, &plan.Steps[n])
}

// SetLimits replaces the limits in force.
func (i *Index) SetLimits(l Limits) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	x.limits = l
	x.signal()
}

// LimitUse is a limit in force, and how much of it is used.
type LimitUse struct {
	Key   string // where it is set
	Of    string // what it bounds
	Used  int
	Limit int
	Fills []layout.ItemID // the first of the items that use it
}

// Limits gives the limits that bear on steps of definitions that items run by, and on collections;
// of each it names at most most items.
func (v View) Limits(wants func(StepID) bool, collections []layout.Name, most int) (all []LimitUse) {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	add := func(key, of string, used, limit int, l limiting) {
		if limit > 0 {
			all = append(all, LimitUse{key, of, used, limit, x.fillers(l, most)})
		}
	}
	f := &x.count.flights
	add("limits: inFlight: in bagpipe.yaml", "items under way", f.all, x.limits.InFlight, limiting{})
	seen := map[StepID]bool{}
	_, plans := x.names.All()
	for i, p := range x.count.plans {
		plan, once := plans[i], false
		for n := range plan.Steps {
			id := StepID{Workflow: plan.Name, Step: layout.Name(plan.Steps[n].Name)}
			if p.runs == 0 || seen[id] || !wants(id) {
				continue
			}
			if !once && !seen[StepID{Workflow: plan.Name}] {
				once, seen[StepID{Workflow: plan.Name}] = true, true
				add("inFlight: of the workflow", "items of "+plan.Name+" under way", f.workflows[plan.Name], plan.InFlight, limiting{workflow: plan.Name})
			}
			seen[id] = true
			add("limit: of the step", id.String()+" in progress", f.steps[id], x.limits.step(plan, n), limiting{step: id})
		}
	}
	for _, c := range collections {
		if x.limits.Collection != nil {
			add("inFlight: of the collection", "items of "+string(c)+" under way", f.collections[c], x.limits.Collection(c), limiting{collection: c})
		}
	}
	return all
}

// Version is a definition that items run by, and how many runs of them do.
type Version struct {
	Plan *state.Definition
	Runs int
}

// Versions gives the definitions that items run by.
func (v View) Versions() (all []Version) {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	_, plans := x.names.All()
	for i, p := range x.count.plans {
		if p.runs > 0 {
			all = append(all, Version{plans[i], p.runs})
		}
	}
	return all
}

func over(n, limit int) bool { return limit > 0 && n >= limit }

// stepFull reports whether a limit of the workspace, but for those of collections,
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
	case over(f.steps[key.StepID], x.limits.step(plan, n)):
		return limiting{text: limitText("step "+key.String(), f.steps[key.StepID], x.limits.step(plan, n), "limit: of the step"), step: key.StepID}, true
	case key.flying:
		return by, false
	case over(f.workflows[plan.Name], plan.InFlight):
		return limiting{text: limitText("workflow "+plan.Name, f.workflows[plan.Name], plan.InFlight, "inFlight: of the workflow"), workflow: plan.Name}, true
	case over(f.all, x.limits.InFlight):
		return limiting{text: limitText("the workspace", f.all, x.limits.InFlight, "limits: inFlight: in bagpipe.yaml")}, true
	}
	return by, false
}

// collectionFull reports whether a collection's own limit holds back items that are
// not in flight.
func (x *store) collectionFull(key readyKey, name layout.Name) bool {
	return !key.flying && x.limits.Collection != nil && over(x.count.flights.collections[name], x.limits.Collection(name))
}

// Overtaken reports whether a step that was handed out passes a limit of the workspace
// by now, or its item lost its place among its siblings, because of what others committed
// since. It counts itself; what this process
// claims alone never passes one, as Take saw to that.
func (i *Index) Overtaken(e Entry) bool {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	c, there := x.claims[x.slotOf(e)]
	if !there {
		return false // in progress already, which its claim will find
	}
	if e.Item.Parent != nil && placeless(x.item(e.Item.ID), e) {
		return true
	}
	over := func(n, limit int) bool { return limit > 0 && n > limit }
	plan, f := e.plan(), &x.count.flights
	if plan == nil || over(f.steps[c.StepID], x.limits.step(plan, e.N)) {
		return plan != nil
	}
	return !c.flying && (over(f.workflows[c.Workflow], plan.InFlight) || over(f.all, x.limits.InFlight) ||
		x.limits.Collection != nil && over(f.collections[c.collection], x.limits.Collection(c.collection)))
}

// placeless reports whether e's step waits for a place in its family's pool; it is e's
// item as it stands by now.
func placeless(it *Item, e Entry) bool {
	if it == nil {
		return false
	}
	run := it.Run(e.Run)
	if run == nil || e.N >= len(run.Steps) {
		return false
	}
	why := run.Steps[e.N].Own()
	return why != nil && why.Code == packed.PoolCode
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
