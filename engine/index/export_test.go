package index

import "bagpipe/engine/gitstore"

// LoadedFrom is the tree of the checkpoint that the index was begun with.
func (ke *Keeper) LoadedFrom() gitstore.Hash {
	ke.mu.Lock()
	defer ke.mu.Unlock()
	return ke.derived.saved
}
