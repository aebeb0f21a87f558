package queue

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// The rules are those of state's package comment, under Multipliers. The children of
// one step are a family. What it means for its members and for their parent is laid
// over their steps when they are put into the index, and again when that changes:
//
//   - each change of a child costs one look at its parent, whose reason counts it;
//   - a place that becomes free costs one look at the child that gets it;
//   - the first child that fails, and the last failure that goes, cost a look at each.
//
// Which children have the places follows from the members' states alone, so that all
// engines, and all at any time, say the same.

// familyID names a family within its parent.
type familyID struct {
	run  string
	step layout.Name
}

// policy is what the step that made the children says of them.
type policy struct {
	last      bool // parentLast
	stop      bool // siblings: stop
	tolerated bool // children that fail do not hold the parent
	pool      int
}

type family struct {
	parent layout.ItemID
	id     familyID
	policy policy
	made   int // as many as the parent's record tells of

	members             map[layout.ItemID]*kin
	done, failed, alive int
	next                kinHeap // unbegun members without a place, the best first
	open                kinHeap // those with one, the worst first
	places              int     // of members in open

	toldParent string // what bars the parent's steps
	toldStop   bool
	toldPolicy policy
}

// kin is a member, as it was put last. One that is no longer in the index, or was put
// again, may still stand in the heaps: it is not in members.
type kin struct {
	id                  layout.ItemID
	done, failed, alive bool
	begins              bool // could begin, but for its place
	open                bool // has a place

	until   time.Time // it cannot begin before
	rank    int
	created time.Time
}

type families map[layout.ItemID]map[familyID]*family

func newFamilies() families { return families{} }

// find finds a family, or begins one.
func (x *Index) family(parent layout.ItemID, id familyID) *family {
	of := x.families[parent]
	if of == nil {
		of = map[familyID]*family{}
		x.families[parent] = of
	}
	f := of[id]
	if f == nil {
		f = &family{parent: parent, id: id, members: map[layout.ItemID]*kin{}, open: kinHeap{worst: true}}
		f.learn(x.items[parent])
		of[id] = f
	}
	return f
}

// learn takes what the parent's record says of its family; nil: it is not there.
func (f *family) learn(parent *Item) {
	f.policy, f.made = policy{}, 0
	if parent == nil {
		return
	}
	for r := range parent.Runs {
		run := &parent.Runs[r]
		if run.Name != f.id.run {
			continue
		}
		for i := range run.Plan.Steps {
			if s := &run.Plan.Steps[i]; layout.Name(s.Name) == f.id.step {
				f.policy = policy{last: s.ParentLast, stop: s.Siblings == state.SiblingsStop, tolerated: s.Tolerated(), pool: s.PoolSize}
				f.made = run.Steps[i].Children
			}
		}
	}
}

func (it *Item) familyOf() (layout.ItemID, familyID) {
	return it.Parent.Item, familyID{it.Parent.Workflow, it.Parent.Step}
}

// join takes an item into its family in the place of what it was, and tells its own
// families what it says of them; it nil: it is gone.
func (x *Index) join(was, it *Item) {
	if was != nil && was.Parent != nil {
		f := x.family(was.familyOf())
		f.leave(was.ID)
	}
	if it == nil {
		return
	}
	if it.Parent != nil {
		f := x.family(it.familyOf())
		f.enter(it)
	}
	for r := range it.Runs {
		for i := range it.Runs[r].Steps {
			if it.Runs[r].Steps[i].Children > 0 {
				x.family(it.ID, familyID{it.Runs[r].Name, layout.Name(it.Runs[r].Plan.Steps[i].Name)})
			}
		}
	}
	for _, f := range x.families[it.ID] {
		f.learn(it)
	}
}

func (f *family) leave(id layout.ItemID) {
	k := f.members[id]
	if k == nil {
		return
	}
	delete(f.members, id)
	f.count(k, -1)
	if k.open {
		f.places--
	}
}

func (f *family) enter(it *Item) {
	k := newKin(it)
	f.members[it.ID] = k
	f.count(k, 1)
	if k.begins && f.policy.pool > 0 {
		heap.Push(&f.next, k)
	}
}

// rebuild forgets who has the places, as there are others now.
func (f *family) rebuild() {
	f.next.of, f.open.of, f.places = nil, nil, 0
	for _, k := range f.members {
		if k.open = false; k.begins && f.policy.pool > 0 {
			heap.Push(&f.next, k)
		}
	}
}

func (f *family) count(k *kin, n int) {
	for _, c := range []struct {
		is bool
		of *int
	}{{k.done, &f.done}, {k.failed, &f.failed}, {k.alive, &f.alive}} {
		if c.is {
			*c.of += n
		}
	}
}

// newKin sees an item as its own record has it.
func newKin(it *Item) *kin {
	k := &kin{id: it.ID, rank: it.Rank, created: it.Created, failed: it.Broken != "", done: it.Broken == "" && len(it.Runs) > 0}
	open, begun := false, false
	for r := range it.Runs {
		run := &it.Runs[r]
		k.failed = k.failed || run.Status == state.Failed
		k.done = k.done && (run.Status == state.Completed || run.Status == state.Inactive)
		k.alive = k.alive || it.flies(run)
		for i := range run.Steps {
			s := &run.Steps[i]
			begun = begun || i > 0 && s.Attempts > 0
			if s.Status != state.Waiting || s.ungated != nil && s.ungated.Until.IsZero() {
				continue
			}
			at := time.Time{}
			if s.ungated != nil {
				at = s.ungated.Until
			}
			if !open || at.Before(k.until) {
				k.until = at
			}
			open = true
		}
	}
	k.alive = k.alive && !k.failed
	k.begins = open && !begun && !k.failed && !it.Held
	return k
}

// settle gives the places to those that are first, and tells whose place is another.
func (f *family) settle() (moved []layout.ItemID) {
	if f.policy.pool == 0 {
		return nil
	}
	room := max(0, f.policy.pool-f.alive)
	give := func() bool {
		k := f.first(&f.next)
		if k == nil {
			return false
		}
		heap.Pop(&f.next)
		k.open = true
		f.places++
		heap.Push(&f.open, k)
		moved = append(moved, k.id)
		return true
	}
	take := func() {
		k := f.first(&f.open)
		heap.Pop(&f.open)
		k.open = false
		f.places--
		heap.Push(&f.next, k)
		moved = append(moved, k.id)
	}
	for f.places > room {
		take()
	}
	for f.places < room && give() {
	}
	for room > 0 {
		best, worst := f.first(&f.next), f.first(&f.open)
		if best == nil || worst == nil || best.compare(worst) >= 0 {
			break
		}
		give()
		take()
	}
	return moved
}

// first is the top of one of the family's heaps, which it clears of those that do not
// belong there any more.
func (f *family) first(h *kinHeap) *kin {
	for len(h.of) > 0 {
		if k := h.of[0]; f.members[k.id] == k && k.open == h.worst {
			return k
		}
		heap.Pop(h)
	}
	return nil
}

// tellFamilies lays over others what has changed for them with an item.
func (x *Index) tellFamilies(it *Item) {
	if it.Parent != nil {
		x.tellFamily(x.family(it.familyOf()))
	}
	for _, f := range x.families[it.ID] {
		x.tellFamily(f)
	}
}

func (x *Index) tellFamily(f *family) {
	all := f.policy != f.toldPolicy
	if all {
		f.toldPolicy = f.policy
		f.rebuild()
	}
	moved, stop := f.settle(), f.stops()
	if all || stop != f.toldStop {
		f.toldStop = stop
		for id := range f.members {
			x.again(id)
		}
	} else {
		for _, id := range moved {
			x.again(id)
		}
	}
	if text := f.holds(); text != f.toldParent {
		f.toldParent = text
		x.again(f.parent)
	}
}

func (f *family) stops() bool { return f.policy.stop && f.failed > 0 }

// holds says why the parent waits; "" when it does not.
func (f *family) holds() string {
	if !f.policy.last {
		return ""
	}
	all := max(f.made, len(f.members))
	missing := all - len(f.members)
	undone := all - f.done
	if f.policy.tolerated {
		undone -= f.failed
	}
	if undone <= 0 {
		return ""
	}
	text := fmt.Sprintf("waits for %d of %d children", undone, all)
	if f.failed > 0 {
		text += fmt.Sprintf(", %d failed", f.failed)
	}
	if missing > 0 {
		text += fmt.Sprintf(", the records of %d are not there", missing)
	}
	return text + "; bagpipe items --parent " + f.parent.Short() + " lists them"
}

// overlayFamily lays over an item's steps what follows from its family, and from those
// it is the parent of.
func (x *Index) overlayFamily(it *Item) {
	if it.Parent != nil {
		x.overlayChild(it)
	}
	for _, f := range x.families[it.ID] {
		if text := f.holds(); text != "" {
			f.overlayParent(it, &state.Reason{Code: childrenCode, Text: text})
		}
	}
}

func (x *Index) overlayChild(it *Item) {
	f := x.family(it.familyOf())
	k := f.members[it.ID]
	var why *state.Reason
	switch {
	case f.stops():
		why = &state.Reason{Code: siblingsCode, Text: fmt.Sprintf("another child of %s failed, and %s has siblings: stop; bagpipe items --parent %s --status failed",
			f.parent.Short(), f.id.step, f.parent.Short())}
	case f.policy.pool > 0 && k != nil && k.begins && !k.open:
		why = &state.Reason{Code: poolCode, Text: fmt.Sprintf("waits for its place: %s lets %d children of %s be under way at once", f.id.step, f.policy.pool, f.parent.Short())}
	default:
		return
	}
	for r := range it.Runs {
		for i := range it.Runs[r].Steps {
			s := &it.Runs[r].Steps[i]
			if s.soft() && (why.Code == siblingsCode || s.ungated == nil || s.ungated.Code != "manual") {
				s.bar(why)
			}
		}
	}
}

// overlayParent bars the steps that need the family's.
func (f *family) overlayParent(it *Item, why *state.Reason) {
	base, _ := state.Instance(f.id.run)
	for r := range it.Runs {
		run := &it.Runs[r]
		for i := range run.Steps {
			if s := &run.Steps[i]; s.soft() && (run.Name == f.id.run && needs(run.Plan, i, f.id.step) ||
				slices.Contains(run.Plan.Foreign(i), state.Ref{Workflow: base, Step: f.id.step}) && it.latest(base) == f.id.run) {
				s.bar(why)
			}
		}
	}
}

func needs(plan *state.Definition, i int, step layout.Name) bool {
	return slices.ContainsFunc(plan.Prerequisites(i), func(p int) bool { return layout.Name(plan.Steps[p].Name) == step })
}

// latest is the item's run of a workflow with the highest number.
func (it *Item) latest(workflow string) (name string) {
	last := -1
	for r := range it.Runs {
		if base, n := state.Instance(it.Runs[r].Name); base == workflow && n > last {
			name, last = it.Runs[r].Name, n
		}
	}
	return name
}

// Family tells how the children of one step of an item stand.
type Family struct {
	Run    string
	Step   layout.Name
	Made   int // as the parent's record tells
	All    int // that are there
	Done   int
	Failed int
	Alive  int
}

// Families gives those of an item, in the order of their names.
func (x *Index) Families(parent layout.ItemID) (all []Family) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, f := range x.families[parent] {
		all = append(all, Family{Run: id.run, Step: id.step, Made: f.made, All: len(f.members), Done: f.done, Failed: f.failed, Alive: f.alive})
	}
	slices.SortFunc(all, func(a, b Family) int { return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Step, b.Step)) })
	return all
}

// Children gives the children of all steps of an item: those that failed first, then
// those that are not done, each the oldest first. The items must not be changed.
func (x *Index) Children(parent layout.ItemID) []*Item {
	x.mu.Lock()
	defer x.mu.Unlock()
	type child struct {
		it   *Item
		rank int
	}
	var all []child
	for _, f := range x.families[parent] {
		for id, k := range f.members {
			c := child{x.items[id], 1}
			if k.failed {
				c.rank = 0
			} else if k.done {
				c.rank = 2
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b child) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.it.Created.Compare(b.it.Created), cmp.Compare(a.it.ID, b.it.ID))
	})
	items := make([]*Item, len(all))
	for i, c := range all {
		items[i] = c.it
	}
	return items
}

func (k *kin) compare(o *kin) int {
	return cmp.Or(k.until.Compare(o.until), cmp.Compare(k.rank, o.rank), k.created.Compare(o.created), cmp.Compare(k.id, o.id))
}

// kinHeap has the best on top, or the worst.
type kinHeap struct {
	of    []*kin
	worst bool
}

func (h *kinHeap) Len() int { return len(h.of) }
func (h *kinHeap) Less(i, j int) bool {
	if h.worst {
		i, j = j, i
	}
	return h.of[i].compare(h.of[j]) < 0
}
func (h *kinHeap) Swap(i, j int) { h.of[i], h.of[j] = h.of[j], h.of[i] }
func (h *kinHeap) Push(v any)    { h.of = append(h.of, v.(*kin)) }
func (h *kinHeap) Pop() any {
	last := h.of[len(h.of)-1]
	h.of = h.of[:len(h.of)-1]
	return last
}
