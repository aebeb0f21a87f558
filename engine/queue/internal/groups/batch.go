package groups

import (
	"fmt"
	"time"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// The rules are: a step with onBatchComplete is done once for a batch, on one of its
// items, which stands for all: the one whose step was begun, else the oldest of those whose
// workflow has not failed, nor been ended by a person. It is
// ready when the batch is closed and every item of the batch with that workflow has
// come as far, or has left the workflow. Once it is done there, the same step of the
// others is not needed. The order of the items, and so the one that stands for all,
// is the same in every engine. An item of no batch is a batch of its own.
//
// What follows for one item is laid over its steps (Step.Blocked, Step.Skip) when it
// is put into the index, and again when the answer for its batch changes.

// gathering is what is known of the items of a batch at one step.
type gathering struct {
	members map[layout.ItemID]member
	absent  int           // members that have not come as far
	first   layout.ItemID // stands for all
	told    answer        // what was laid over the members
}

type member struct {
	id              layout.ItemID
	created         time.Time
	here            bool // has come as far
	able            bool // its workflow has not failed, nor been ended
	begun, finished bool
}

// answer is what a batch says to its items.
type answer struct {
	closed bool
	open   bool // closed, and all have come as far
	first  layout.ItemID
	done   bool
}

type batches struct {
	closed     map[string]bool
	broken     map[string]int // items whose record cannot be read
	gatherings map[string]map[packed.StepID]*gathering
}

func newBatches() batches {
	return batches{closed: map[string]bool{}, broken: map[string]int{}, gatherings: map[string]map[packed.StepID]*gathering{}}
}

// tellBatch lays over the items of a batch what has changed for them.
func (o *Groups) tellBatch(name string) {
	for _, g := range o.batches.gatherings[name] {
		o.tellMembers(name, g)
	}
}

// tellMembers does so for one step, if the answer is another than before.
func (o *Groups) tellMembers(batch string, g *gathering) {
	now := o.answer(batch, g)
	if now == g.told {
		return
	}
	g.told = now
	for id := range g.members {
		o.items.Again(id)
	}
}

// answer is what follows from the members of a batch.
func (o *Groups) answer(batch string, g *gathering) answer {
	if g.absent > 0 || !o.batches.closed[batch] || o.batches.broken[batch] > 0 {
		return answer{closed: o.batches.closed[batch]}
	}
	if g.first == "" {
		for id, m := range g.members {
			if best, there := g.members[g.first]; !there || m.before(best) {
				g.first = id
			}
		}
	}
	return answer{closed: true, open: true, first: g.first, done: g.members[g.first].finished}
}

// before orders the members: the first of them stands for all.
func (m member) before(o member) bool {
	if m.begun != o.begun {
		return m.begun
	}
	if m.able != o.able {
		return m.able
	}
	if c := m.created.Compare(o.created); c != 0 {
		return c < 0
	}
	return m.id < o.id
}

// gather takes an item into what is known of its batch, or out of it.
func (o *Groups) gather(it *packed.Item, in bool) {
	if it.Batch == "" {
		return
	}
	if it.Broken != "" {
		o.batches.broken[it.Batch] += sign(in)
		o.tellBatch(it.Batch)
		return
	}
	for run, i := range it.Steps() {
		if run.Plan.Steps[i].OnBatchComplete {
			o.gatherStep(it, run, i, in)
		}
	}
}

func sign(in bool) int {
	if in {
		return 1
	}
	return -1
}

// gathering finds, or begins, what is known of an item's batch at step i of run.
func (b *batches) gathering(it *packed.Item, run *packed.Run, i int) *gathering {
	of := b.gatherings[it.Batch]
	if of == nil {
		of = map[packed.StepID]*gathering{}
		b.gatherings[it.Batch] = of
	}
	id := packed.StepID{Workflow: run.Plan.Name, Step: layout.Name(run.Plan.Steps[i].Name)}
	if of[id] == nil {
		of[id] = &gathering{members: map[layout.ItemID]member{}}
	}
	return of[id]
}

func (o *Groups) gatherStep(it *packed.Item, run *packed.Run, i int, in bool) {
	g := o.batches.gathering(it, run, i)
	if was, there := g.members[it.ID]; there {
		if !was.here {
			g.absent--
		}
		delete(g.members, it.ID)
	}
	g.first = g.firstAfter(it.ID)
	if !in {
		return
	}
	s := &run.Steps[i]
	m := member{id: it.ID, created: it.Created, here: arrived(run, i), able: run.Status != state.Failed && run.Status != state.Inactive,
		begun:    s.Attempts > 0 && s.Status != state.Skipped,
		finished: s.Status == state.Completed || s.Status == state.Skipped || s.Status == state.Failed && run.Plan.Steps[i].Tolerated()}
	if !m.here {
		g.absent++
	}
	g.members[it.ID] = m
	if best, there := g.members[g.first]; !there && len(g.members) == 1 || there && m.before(best) {
		g.first = it.ID
	}
}

// firstAfter keeps the first member, unless it is the one that changes; then it is
// looked for again when it is asked for.
func (g *gathering) firstAfter(changed layout.ItemID) layout.ItemID {
	if g.first == changed {
		return ""
	}
	return g.first
}

// arrived reports whether an item has come as far as its step s, or has left.
// One that failed before keeps the others waiting only with waitForFailed.
func arrived(run *packed.Run, i int) bool {
	s := &run.Steps[i]
	if run.Status == state.Completed || run.Status == state.Inactive || run.Status == state.Failed && !run.Plan.Steps[i].WaitForFailed {
		return true
	}
	why := s.ByRecord()
	if why == nil {
		return true
	}
	switch why.Code {
	case "done", "running", "date", "retry", "manual":
		return true
	}
	return s.Status == state.Failed
}

// overlayBatch lays what a batch says over an item's steps.
func (o *Groups) overlayBatch(it *packed.Item) {
	if it.Batch == "" {
		return
	}
	for run, i := range it.Steps() {
		if run.Plan.Steps[i].OnBatchComplete {
			o.overlayStep(it, run, i)
		}
	}
}

func (o *Groups) overlayStep(it *packed.Item, run *packed.Run, i int) {
	s := &run.Steps[i]
	if !s.Soft() {
		return
	}
	g := o.batches.gathering(it, run, i)
	now := o.answer(it.Batch, g)
	switch {
	case now.open && now.first == it.ID:
	case now.open && now.done:
		s.Bar(nil)
		s.Skip = fmt.Sprintf("not applicable: it was done once for batch %s, on item %s", it.Batch, now.first)
	case now.open:
		s.Bar(&state.Reason{Code: packed.BatchCode, Text: fmt.Sprintf("is done once for batch %s, on item %s (%s)", it.Batch, now.first.Short(), o.label(now.first, it))})
	case !o.batches.closed[it.Batch]:
		s.Bar(&state.Reason{Code: packed.BatchCode, Text: "waits for batch " + it.Batch + " to be closed"})
	default:
		s.Bar(&state.Reason{Code: packed.BatchCode, Text: "waits for the other items of batch " + it.Batch})
	}
}

// label is the label of an item of a batch; it is the one that is being put.
func (o *Groups) label(id layout.ItemID, it *packed.Item) string {
	if first := o.items.Item(id); first != nil {
		return first.Label
	}
	return it.Label
}
