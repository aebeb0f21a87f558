package queue

import ()

// overlay lays what other items say over an item's steps, in the place of what they
// said before.
func (x *Index) overlay(it *Item) {
	if it.Broken != "" || it.Batch == "" && it.Parent == nil && x.families[it.ID] == nil {
		return
	}
	for r := range it.Runs {
		for i := range it.Runs[r].Steps {
			it.Runs[r].Steps[i].Uncover()
		}
	}
	x.overlayBatch(it)
	x.overlayFamily(it)
}
