package queue

import (
	"time"

	"bagpipe/layout"
)

// Place says what is before a step that is ready: how many entries of the same step
// are handed out earlier, which limit keeps it back, or that it has been taken here.
// ok is false when the step is not ready at now.
func (x *Index) Place(id layout.ItemID, run string, n int, now time.Time) (before int, limit string, taken, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle(now)
	b := x.table.get(bitsOf(id))
	if b == nil {
		return 0, "", false, false
	}
	var g glance
	g.look(b)
	of := g.find(x.names.number(run))
	if of == nil || n >= of.to-of.from {
		return 0, "", false, false
	}
	how, until := g.standing(of, n)
	if how == standsNowhere || how == standsDated && until > now.UnixMilli() {
		return 0, "", false, false
	}
	s := slot{bitsOf(id), uint32(of.name), uint16(n)}
	if x.taken[s] {
		return 0, "", true, true
	}
	key := x.keyOf(&g, of, n)
	if text, full := x.full(key, x.names.plan(of.plan), n); full {
		return 0, text, false, true
	}
	collection := layout.Name(x.names.text(g.collection))
	if x.collectionFull(key, collection) {
		return 0, limitText("collection "+string(collection), x.count.flights.collections[collection], x.limits.Collection(collection), "inFlight: of the collection"), false, true
	}
	p := x.preview(Question{Step: func(id StepID) bool { return id == key.StepID }})
	for {
		e, more := p.next(x, now)
		if !more || (slot{e.item, e.run, e.n}) == s {
			return before, "", false, true
		}
		before++
	}
}
