package queue

import (
	"cmp"
	"slices"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/layout"
)

// Keepers are the items for which a step waits.
type Keepers struct {
	Items []layout.ItemID // the first of them
	All   int
	Open  bool // the batch is not closed, which is what the step waits for
}

// Keepers says for which other items step n of a run waits, where a reason of such a
// code keeps it: of a batch those that have not come as far, or the one that stands for
// all; of a parent the children that are not done, those that failed first; of a child
// its siblings that failed, or have the places. At most most of them are named.
func (x *Index) Keepers(id layout.ItemID, run string, n int, code string, most int) (k Keepers) {
	x.mu.Lock()
	defer x.mu.Unlock()
	it := x.item(id)
	if it == nil {
		return k
	}
	r := slices.IndexFunc(it.Runs, func(r Run) bool { return r.Name == run })
	if r < 0 || n >= len(it.Runs[r].Steps) {
		return k
	}
	var of []layout.ItemID
	switch code {
	case packed.BatchCode:
		of, k.Open = x.batchKeepers(it, &it.Runs[r], n), !x.batches.closed[it.Batch]
	case packed.ChildrenCode:
		for _, f := range x.families[id] {
			if f.holds() != "" && f.keeps(it, &it.Runs[r], n) {
				of = append(of, f.named(func(k *kin) bool { return !k.done && !(k.failed && f.policy.tolerated) })...)
			}
		}
	case packed.SiblingsCode:
		if it.Parent != nil {
			of = x.family(familyOf(it)).named(func(k *kin) bool { return k.failed })
		}
	case packed.PoolCode:
		if it.Parent != nil {
			of = x.family(familyOf(it)).named(func(k *kin) bool { return k.alive || k.open })
		}
	}
	k.All = len(of)
	k.Items = of[:min(most, len(of))]
	return k
}

func (x *Index) batchKeepers(it *Item, run *Run, n int) (of []layout.ItemID) {
	g := x.batches.gathering(it, run, n)
	if now := x.answer(it.Batch, g); now.open {
		if now.first != it.ID {
			of = append(of, now.first)
		}
		return of
	}
	var absent []member
	for id, m := range g.members {
		if !m.here && id != it.ID {
			absent = append(absent, m)
		}
	}
	slices.SortFunc(absent, func(a, b member) int { return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id, b.id)) })
	for _, m := range absent {
		of = append(of, m.id)
	}
	return of
}

// named are the members of which something holds: those that failed, then the oldest.
func (f *family) named(is func(*kin) bool) (of []layout.ItemID) {
	var kins []*kin
	for _, k := range f.members {
		if is(k) {
			kins = append(kins, k)
		}
	}
	slices.SortFunc(kins, func(a, b *kin) int {
		if a.failed != b.failed {
			if a.failed {
				return -1
			}
			return 1
		}
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
	for _, k := range kins {
		of = append(of, k.id)
	}
	return of
}

// limiting is a limit that holds a step back, and what counts for it.
type limiting struct {
	text       string
	step       StepID      // items of which it is in progress; none: those in flight,
	workflow   string      // all of them, or of one workflow,
	collection layout.Name // or of one collection
}

// fillers are the items that fill a limit, in the order of their identifiers.
func (x *Index) fillers(l limiting, most int) (of []layout.ItemID) {
	var g packed.Outline
	x.table.Each(0, packed.Pages, func(bits uint64, b []byte) {
		if t := packed.TraitsOf(b); len(of) == most || t&Open == 0 && t&Running == 0 {
			return
		}
		g.Read(b)
		if x.fills(&g, l) {
			of = append(of, layout.ItemIDOf(bits))
		}
	})
	return of
}

func (x *Index) fills(g *packed.Outline, l limiting) bool {
	if l.collection != "" && l.collection != layout.Name(x.names.Text(g.Collection)) {
		return false
	}
	for r := range g.Runs {
		run := &g.Runs[r]
		plan := x.names.Plan(run.Plan)
		if l.step == (StepID{}) {
			if (l.workflow == "" || l.workflow == plan.Name) && g.Flies(run) {
				return true
			}
			continue
		}
		for i := range run.To - run.From {
			if g.Steps[run.From+i].Status == packed.StatusInProgress && l.step == (StepID{Workflow: plan.Name, Step: layout.Name(plan.Steps[i].Name)}) {
				return true
			}
		}
	}
	return false
}
