package queue

import (
	"testing"

	"bagpipe/engine/state"
	"bagpipe/layout"

	"pgregory.net/rapid"
)

// A brief listing is the whole one, of items without what their steps are.
func TestBriefListing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(t, Lanes{Names: []layout.Name{"high", "low"}})
		for range rapid.IntRange(0, 60).Draw(t, "acts") {
			if rapid.Bool().Draw(t, "drop") {
				c.drop(rapid.SampledFrom([]layout.Name{"a", "b"}).Draw(t, "collection"), rapid.SampledFrom([]string{"", "x"}).Draw(t, "batch"),
					rapid.SampledFrom([]layout.Name{"high", "low"}).Draw(t, "lane"))
				continue
			}
			c.work()
		}
		limit := rapid.IntRange(0, 10).Draw(t, "limit")
		whole, _ := c.x.Queue(t0, Question{Limit: limit})
		brief, _ := c.x.Queue(t0, Question{Limit: limit, Brief: true})
		if len(whole) != len(brief) {
			t.Fatalf("%d entries, brief %d", len(whole), len(brief))
		}
		for i, w := range whole {
			b := brief[i]
			if b.Item.ID != w.Item.ID || b.Run != w.Run || b.Step != w.Step || b.N != w.N || b.Item.Label != w.Item.Label || b.Item.Lane != w.Item.Lane ||
				b.Item.Collection != w.Item.Collection || b.Item.Batch != w.Item.Batch || !b.Item.Created.Equal(w.Item.Created) || !b.Since.Equal(w.Item.Runs[0].Steps[w.N].Since) {
				t.Fatalf("%+v of %+v is in brief %+v of %+v", w, w.Item, b, b.Item)
			}
		}
	})
}

// What waits for a person is listed oldest first, and no more of it than is wanted.
func TestPeopleOldestFirst(t *testing.T) {
	c := newCrowd(t, Lanes{Names: []layout.Name{"normal"}})
	for range 50 {
		id := c.drop("maps", "", "normal")
		it := c.items[id]
		if it.Label != "7" {
			it.Runs[0].Plan.Steps[1].Manual = true
			it.Runs[0].Steps[1].Blocked = state.ManualReason()
			it.Runs[0].Steps[1].NoteOwn()
			c.x.Put(it)
		}
	}
	_, waits := c.x.Queue(t0, Question{Limit: 5, Brief: true})
	if len(waits) != 5 {
		t.Fatalf("%d of 5", len(waits))
	}
	for i := 1; i < len(waits); i++ {
		if !waits[i-1].Item.Created.Before(waits[i].Item.Created) {
			t.Error("they are not the oldest first")
		}
	}
	if waits[0].Item.Label != "1" {
		t.Errorf("the first is %s", waits[0].Item.Label)
	}
}
