package groups

import (
	"cmp"
	"slices"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/queue/internal/turns"
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
// Which children have the places follows from the members' states, so that all engines say
// the same; but one that this engine handed out keeps its place until its claim is in the
// history, or did not come to be: the claim may be committed already, and not be told yet.

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
	next                turns.Heap[nextKin] // unbegun members without a place, the best first
	open                turns.Heap[openKin] // those with one, the worst first
	places              int                 // of members in open

	toldParent string // what bars the parent's steps
	toldStop   bool
	toldPolicy policy
}

type families map[layout.ItemID]map[familyID]*family

func newFamilies() families { return families{} }

// family finds a family, or begins one.
func (o *Groups) family(parent layout.ItemID, id familyID) *family {
	of := o.families[parent]
	if of == nil {
		of = map[familyID]*family{}
		o.families[parent] = of
	}
	f := of[id]
	if f == nil {
		f = &family{parent: parent, id: id, members: map[layout.ItemID]*kin{}}
		f.learn(o.items.Item(parent))
		of[id] = f
	}
	return f
}

// learn takes what the parent's record says of its family; nil: it is not there.
func (f *family) learn(parent *packed.Item) {
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
				f.policy = policy{last: s.ParentLast, stop: s.Siblings == state.SiblingsStop, tolerated: s.Tolerated() || s.OnChildFailure == state.ChildFail || s.OnChildFailure == state.ChildSkip, pool: s.PoolSize}
				f.made = run.Steps[i].Children
			}
		}
	}
}

func familyOf(it *packed.Item) (layout.ItemID, familyID) {
	return it.Parent.Item, familyID{it.Parent.Workflow, it.Parent.Step}
}

// join takes an item into its family in the place of what it was, and tells its own
// families what it says of them; it nil: it is gone.
func (o *Groups) join(was, it *packed.Item) {
	handed := 0
	if was != nil && was.Parent != nil {
		f := o.family(familyOf(was))
		handed = f.leave(was.ID)
	}
	if it == nil {
		return
	}
	if it.Parent != nil {
		f := o.family(familyOf(it))
		f.enter(it, o.items.Rank(it.Lane), handed)
	}
	for run, i := range it.Steps() {
		if run.Steps[i].Children > 0 {
			o.family(it.ID, familyID{run.Name, layout.Name(run.Plan.Steps[i].Name)})
		}
	}
	for _, f := range o.families[it.ID] {
		f.learn(it)
	}
}

// leave takes a member out, and tells how many of its steps are handed out.
func (f *family) leave(id layout.ItemID) (handed int) {
	k := f.members[id]
	if k == nil {
		return 0
	}
	delete(f.members, id)
	f.count(k, -1)
	if k.open {
		f.places--
	}
	return k.handed
}

func (f *family) enter(it *packed.Item, rank, handed int) {
	k := newKin(it, rank)
	k.handed = handed
	f.members[it.ID] = k
	f.count(k, 1)
	if k.begins && f.policy.pool > 0 {
		f.next.Push(nextKin{k})
	}
}

// Hand notes that a step of an item is handed out, n 1, or is not any more, n -1.
func (o *Groups) Hand(it *packed.Item, n int) {
	if it.Parent == nil {
		return
	}
	f := o.family(familyOf(it))
	was := f.members[it.ID]
	if was == nil {
		return
	}
	k := *was // what the heaps hold must not change its order
	k.handed = max(0, k.handed+n)
	f.members[it.ID] = &k
	if f.policy.pool == 0 {
		return
	}
	if k.open {
		f.open.Push(openKin{&k})
	} else if k.begins {
		f.next.Push(nextKin{&k})
	}
	o.tellFamily(f)
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

// Rerank brings the children's places in line with other lanes.
func (o *Groups) Rerank() {
	for _, of := range o.families {
		for _, f := range of {
			for id, k := range f.members {
				k.rank = o.items.Rank(o.items.Item(id).Lane)
			}
			f.toldPolicy.pool = -1 // all are told
			o.tellFamily(f)
		}
	}
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

// Families gives the families of a parent, in the order of their names.
func (o *Groups) Families(parent layout.ItemID) (all []Family) {
	for id, f := range o.families[parent] {
		all = append(all, Family{Run: id.run, Step: id.step, Made: f.made, All: len(f.members), Done: f.done, Failed: f.failed, Alive: f.alive})
	}
	slices.SortFunc(all, func(a, b Family) int { return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Step, b.Step)) })
	return all
}

// Children gives the children of all steps of an item: failed ones first, then those that
// are not done, each the oldest first.
func (o *Groups) Children(parent layout.ItemID) []*packed.Item {
	type child struct {
		it   *packed.Item
		rank int
	}
	var all []child
	for _, f := range o.families[parent] {
		for id, k := range f.members {
			c := child{o.items.Item(id), 1}
			if k.failed {
				c.rank = 0
			} else if k.done {
				c.rank = 2
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b child) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), packed.CompareAge(a.it, b.it))
	})
	items := make([]*packed.Item, len(all))
	for i, c := range all {
		items[i] = c.it
	}
	return items
}
