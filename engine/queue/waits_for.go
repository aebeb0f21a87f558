package queue

import (
	"slices"
	"time"

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

// Placed is what is before a step that is ready.
type Placed struct {
	Before  int             // entries of the same step that are handed out earlier
	Limit   string          // which limit keeps it back
	Fills   []layout.ItemID // then: the first of the items that fill that limit
	OneStep bool            // then: it is the step's own, filled by those of which the step is in progress
	Taken   bool            // it has been taken here
}

// Place says what is before a step that is ready, naming at most most items; ok is
// false when the step is not ready at now.
func (v View) Place(id layout.ItemID, run string, n int, now time.Time, most int) (p Placed, ok bool) {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle(now)
	b := x.table.Get(packed.BitsOf(id))
	if b == nil {
		return p, false
	}
	var g packed.Outline
	g.Read(b)
	of := g.Run(x.names.Number(run))
	if of == nil || n >= of.To-of.From {
		return p, false
	}
	how, until := g.Standing(of, n)
	if how == packed.StandsNowhere || how == packed.StandsDated && until > now.UnixMilli() {
		return p, false
	}
	s := slot{packed.BitsOf(id), uint32(of.Name), uint16(n)}
	if p.Taken = x.taken[s]; p.Taken {
		return p, true
	}
	key := x.keyOf(&g, of, n)
	limit, full := x.full(key, x.names.Plan(of.Plan), n)
	if collection := layout.Name(x.names.Text(g.Collection)); !full && x.collectionFull(key, collection) {
		full = true
		limit = limiting{text: limitText("collection "+string(collection), x.count.flights.collections[collection], x.limits.Collection(collection), "inFlight: of the collection"), collection: collection}
	}
	if full {
		p.Limit, p.OneStep, p.Fills = limit.text, limit.step != StepID{}, x.fillers(limit, most)
		return p, true
	}
	ahead := x.walk(Question{Step: func(id StepID) bool { return id == key.StepID }}, now)
	for {
		e, more := ahead()
		if !more || (slot{e.Item, e.Run, e.N}) == s {
			return p, true
		}
		p.Before++
	}
}
