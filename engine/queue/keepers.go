package queue

import (
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
func (v View) Keepers(id layout.ItemID, run string, n int, code string, most int) (k Keepers) {
	x := v.s
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
	of, open := x.others.Keepers(it, &it.Runs[r], n, code)
	k.Open, k.All = open, len(of)
	k.Items = of[:min(most, len(of))]
	return k
}

// limiting is a limit that holds a step back, and what counts for it.
type limiting struct {
	text       string
	step       StepID      // items of which it is in progress; none: those in flight,
	workflow   string      // all of them, or of one workflow,
	collection layout.Name // or of one collection
}

// fillers are the items that fill a limit, in the order of their identifiers.
func (x *store) fillers(l limiting, most int) (of []layout.ItemID) {
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

func (x *store) fills(g *packed.Outline, l limiting) bool {
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
