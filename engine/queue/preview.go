package queue

import (
	"cmp"
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
