package queue

import (
	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/state"
)

// Read fills an empty index from a checkpoint, whose bytes it keeps, and gives the
// tree that it was derived from; Fill has to follow. It is an ErrCheckpoint when it is
// damaged, of other facets, or of a definition that plans does not find; the index
// is of no use then.
func (i *Index) Read(data []byte, facets []string, plans func(digest string) *state.Definition) (tree string, err error) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	return packed.Restore(data, &x.table, x.names, facets, plans)
}

// Snapshot gives the index as it is now; tree names what the items were derived from.
// ok is false while an item is shown that is in no tree.
func (v View) Snapshot(tree string, facets []string) (s *Snapshot, ok bool) {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	return packed.NewSnapshot(&x.table, x.names, tree, facets)
}
