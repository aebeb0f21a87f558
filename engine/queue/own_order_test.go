package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"bagpipe/engine/queue/internal/turns"
	"bagpipe/layout"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"
)

// byLabel is the order of labels, the highest first; the label is what Put says now.
func byLabel() Order {
	return Order{
		Keys:    func(e Entry) []gjson.Result { return []gjson.Result{gjson.Parse(`"` + e.Item.Label + `"`)} },
		Compare: func(a, b []gjson.Result) int { return strings.Compare(b[0].Str, a[0].Str) },
	}
}

// TestOrderOfItsOwn: whatever comes, is done, changes its place in the order, or is
// held back by a collection's limit meanwhile, what is taken is the highest of what
// may be, and all is done in the end.
func TestOrderOfItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(t, Lanes{Names: []layout.Name{"high", "low"}})
		limit := rapid.IntRange(0, 3).Draw(t, "limit")
		c.x.SetLimits(Limits{Collection: func(n layout.Name) int { return map[layout.Name]int{"a": limit}[n] }})
		drop := func() {
			id := c.drop(rapid.SampledFrom([]layout.Name{"a", "b"}).Draw(t, "collection"), "", rapid.SampledFrom([]layout.Name{"high", "low"}).Draw(t, "lane"))
			c.relabel(id, rapid.IntRange(0, 5).Draw(t, "key"))
		}
		for range rapid.IntRange(0, 6).Draw(t, "before") {
			drop()
		}
		c.x.SetOrder(byLabel())
		var out []Entry
		for range rapid.IntRange(0, 60).Draw(t, "acts") {
			switch rapid.IntRange(0, 4).Draw(t, "act") {
			case 0:
				drop()
			case 1:
				if ids := slices.Sorted(maps.Keys(c.items)); len(ids) > 0 {
					c.relabel(rapid.SampledFrom(ids).Draw(t, "item"), rapid.IntRange(0, 5).Draw(t, "other key"))
				}
			case 2:
				if len(out) > 0 {
					c.end(out[0])
					out = out[1:]
				}
			default:
				out = c.takeHighest(t, out, limit)
			}
		}
		for _, e := range out {
			c.end(e)
		}
		for range 1000 {
			out = c.takeHighest(t, nil, limit)
			if len(out) == 0 {
				break
			}
			c.end(out[0])
		}
		for _, it := range c.items {
			if s := it.Runs[0].Status; s != "completed" {
				t.Fatalf("item %s is %s in the end", it.ID, s)
			}
		}
	})
}

// relabel gives an item another place in the order.
func (c *crowd) relabel(id layout.ItemID, key int) {
	it := c.items[id]
	it.Label = fmt.Sprint(key)
	c.x.Put(it)
}

func (c *crowd) end(e Entry) {
	c.stand(c.items[e.Item.ID], e.N)
	c.x.Return(e)
}

// takeHighest takes one, and compares it with everything that could have been taken.
func (c *crowd) takeHighest(t *rapid.T, out []Entry, limit int) []Entry {
	flying := 0
	busy := map[layout.ItemID]bool{}
	for _, e := range out {
		busy[e.Item.ID] = true
	}
	flies := func(it *Item) bool { return it.Flies(&it.Runs[0]) }
	for _, it := range c.items {
		if it.Collection == "a" && (flies(it) || busy[it.ID]) {
			flying++
		}
	}
	best := ""
	for _, it := range c.items {
		full := it.Collection == "a" && limit > 0 && flying >= limit && !flies(it)
		if it.Runs[0].Status != "completed" && !busy[it.ID] && !full && it.Label > best {
			best = it.Label
		}
	}
	e, ok, _ := c.x.Take(t0, nil)
	if ok != (best != "") {
		t.Fatalf("taken: %v, and the highest is %q", ok, best)
	}
	if !ok {
		return out
	}
	if got := c.items[e.Item.ID].Label; got != best {
		t.Fatalf("%s was taken before %s", got, best)
	}
	return append(out, e)
}

// What is left of what was taken is cleared away: the queues do not grow with what
// is done.
func TestOrderLeavesNothingBehind(t *testing.T) {
	c := newCrowd(t, Lanes{Names: []layout.Name{"normal"}})
	c.x.SetOrder(byLabel())
	const items = 5000
	for range items {
		c.drop("maps", "", "normal")
	}
	for {
		if _, _, ok := c.work(); !ok {
			break
		}
	}
	left := 0
	c.x.s.eachReady(func(turns.Entry, readyKey, turns.Place) { left++ })
	if left > items/2 {
		t.Errorf("%d entries are left of what is done", left)
	}
}
