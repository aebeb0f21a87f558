package index

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/layout"
)

// fillSince puts the items that are not the same as in a tree, and tells how many;
// zero: all of them.
func (ke *Keeper) fillSince(ctx context.Context, v gitstore.View, since gitstore.Hash, f *queue.Filling) (int, error) {
	var n atomic.Int64
	scans := sync.Pool{New: func() any { return new(Scanned) }}
	err := v.Folders(ctx, since, layout.ItemsDir, ledger.ItemDepth, func(folder gitstore.Folder) error {
		id, rest, ok := layout.ItemOfPath(folder.Path)
		if !ok || rest != "" {
			return nil // no item's folder
		}
		n.Add(1)
		records, err := recordsOf(folder)
		if err != nil {
			return err
		}
		if records.Manifest == nil && records.Execution == nil {
			f.Remove(id)
			return nil
		}
		scan := scans.Get().(*Scanned)
		f.Put(ke.Summarise(v, id, records, scan, &scan.item))
		scans.Put(scan)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("read the items: %w", err)
	}
	return int(n.Load()), nil
}

// recordsOf reads what an item's folder holds.
func recordsOf(folder gitstore.Folder) (*ledger.Records, error) {
	manifest, err := folder.ReadFile(layout.ManifestJSON)
	if err != nil {
		return nil, err
	}
	execution, err := folder.ReadFile(layout.ExecutionJSON)
	return &ledger.Records{Manifest: manifest, Execution: execution}, err
}
