package queue

import (
	"time"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/layout"
)

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
