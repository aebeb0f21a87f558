package groups

import (
	"bagpipe/engine/queue/internal/packed"
	"bagpipe/layout"
)

// Items is the index that holds the items; it is called under its lock.
type Items interface {
	Item(id layout.ItemID) *packed.Item // a copy; nil: there is none
	Again(id layout.ItemID)             // puts the item again, with Overlay as it is now
	Rank(lane layout.Name) int
}

// Groups are all batches and families of an index.
type Groups struct {
	items    Items
	batches  batches
	families families
}

// New gives groups without items.
func New(i Items) *Groups {
	return &Groups{items: i, batches: newBatches(), families: newFamilies()}
}

// Change notes that an item is another than it was; it nil: it is gone, was nil: it is
// new. The index puts the item, and tell has to follow.
func (o *Groups) Change(was, it *packed.Item) {
	if was != nil {
		o.gather(was, false)
	}
	if it != nil {
		o.gather(it, true)
	}
	o.join(was, it)
}

// Tell puts those items again for which an item's change makes a difference.
func (o *Groups) Tell(it *packed.Item) {
	o.tellBatch(it.Batch)
	o.tellFamilies(it)
}

// TellAll puts those items again that are not as the others say.
func (o *Groups) TellAll() {
	for name := range o.batches.gatherings {
		o.tellBatch(name)
	}
	for _, of := range o.families {
		for _, f := range of {
			o.tellFamily(f)
		}
	}
}

// SetBatch notes whether a batch is closed, and tells its items.
func (o *Groups) SetBatch(name string, closed bool) (changed bool) {
	if o.batches.closed[name] == closed {
		return false
	}
	o.batches.closed[name] = closed
	o.tellBatch(name)
	return true
}

// Overlay lays what other items say over an item's steps, in the place of what they
// said before.
func (o *Groups) Overlay(it *packed.Item) {
	if it.Broken != "" || it.Batch == "" && it.Parent == nil && o.families[it.ID] == nil {
		return
	}
	for run, i := range it.Steps() {
		run.Steps[i].Uncover()
	}
	o.overlayBatch(it)
	o.overlayFamily(it)
}
