package index

import (
	"fmt"
	"log/slog"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// loadBatches tells the index which batches are closed, and warns of those that cannot be read.
func loadBatches(l *ledger.Ledger, v gitstore.View, index *queue.Index) error {
	batches, broken, err := ledger.ListBatches(v)
	for _, b := range batches {
		index.SetBatch(string(b.Name), !b.Closed.IsZero())
	}
	for _, b := range broken {
		l.Warn(fmt.Sprintf("%v; the batch counts as open until the file is put right in a clone and pushed", b))
	}
	return err
}

// noteBatch does so for one that was committed. A damaged one stays as it was.
func noteBatch(log *slog.Logger, index *queue.Index, c gitstore.FileChange) {
	name, ok := layout.BatchOfPath(c.Path)
	if !ok || index == nil || c.Deleted {
		return
	}
	b, err := layout.DecodeBatch(c.Data)
	if err != nil || b.Name != name {
		log.Warn("a batch that cannot be read was committed", "path", c.Path, "err", err)
		return
	}
	index.SetBatch(string(name), !b.Closed.IsZero())
}

// AroundOf is state.Execution.Around of an item, as the index knows the others; nil
// where there is none, as for what a person decides.
func (ke *Keeper) AroundOf(id layout.ItemID) func(string, layout.Name) (*state.Reason, string) {
	ke.mu.Lock()
	index := ke.index
	ke.mu.Unlock()
	if index == nil {
		return nil
	}
	return func(workflow string, step layout.Name) (*state.Reason, string) {
		return index.Around(id, workflow, step)
	}
}
