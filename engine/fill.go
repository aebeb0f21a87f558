package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"
	"bagpipe/layout"
)

// itemDepth is how many folders below items/ an item's folder stands.
const itemDepth = 5

// fillSince puts the items that are not the same as in a tree, and tells how many;
// zero: all of them.
func (e *Engine) fillSince(ctx context.Context, v gitstore.View, since gitstore.Hash, f *queue.Filling) (int, error) {
	var n atomic.Int64
	scans := sync.Pool{New: func() any { return new(scanned) }}
	err := v.Folders(ctx, since, layout.ItemsDir, itemDepth, func(folder gitstore.Folder) error {
		id, rest, ok := layout.ItemOfPath(folder.Path)
		if !ok || rest != "" {
			return nil // no item's folder
		}
		n.Add(1)
		records, err := recordsOf(folder)
		if err != nil {
			return err
		}
		if records.manifest == nil && records.execution == nil {
			f.Remove(id)
			return nil
		}
		scan := scans.Get().(*scanned)
		f.Put(e.summarise(v, id, records, scan, &scan.item))
		scans.Put(scan)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("read the items: %w", err)
	}
	return int(n.Load()), nil
}

// recordsOf reads what an item's folder holds.
func recordsOf(folder gitstore.Folder) (*files, error) {
	manifest, err := folder.ReadFile(layout.ManifestJSON)
	if err != nil {
		return nil, err
	}
	execution, err := folder.ReadFile(layout.ExecutionJSON)
	return &files{manifest, execution}, err
}
