package ask

import (
	"context"
	"slices"
	"strings"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// listings are the first files of inventories that were told last: an item of 100,000 files has an
// inventory of 30 MB, and is looked at again and again while it moves. The lock guards kept.
type listings struct {
	mu   sync.Mutex
	kept map[listing][]FileDetail
}

type listing struct {
	inventory gitstore.Hash
	most      int
}

// File gives one file of an item's inventory, by its path as it stands there; ok is false where there
// is none.
func (de *Details) File(ctx context.Context, id layout.ItemID, path string) (f FileDetail, ok bool, err error) {
	v, err := de.ledger.Store.Tip()
	if err != nil {
		return f, false, err
	}
	data, err := ledger.ReadOptional(v, layout.ItemDir(id)+"/"+layout.InventoryJSON)
	if err != nil {
		return f, false, err
	}
	f.Path = path
	if data != nil {
		f.InventoryFile, ok, err = layout.FileOf(data, path)
		return f, ok, err
	}
	d, err := de.Show(ctx, id) // it may be retired
	at := slices.IndexFunc(d.Files, func(f FileDetail) bool { return f.Path == path })
	if err != nil || at < 0 {
		return f, false, err
	}
	return d.Files[at], true, nil
}

// of gives the first files of an item, at most so many; 0: all.
func (l *listings) of(v gitstore.View, id layout.ItemID, most int) (files []FileDetail, err error) {
	const mostKept = 64
	entries, err := v.List(layout.ItemDir(id))
	at := slices.IndexFunc(entries, func(e gitstore.Entry) bool { return e.Name == layout.InventoryJSON })
	if err != nil || at < 0 {
		return []FileDetail{}, err
	}
	key := listing{entries[at].Hash, most}
	l.mu.Lock()
	files, known := l.kept[key]
	l.mu.Unlock()
	if known {
		return slices.Clone(files), nil
	}
	data, err := ledger.ReadOptional(v, layout.ItemDir(id)+"/"+layout.InventoryJSON)
	if err != nil {
		return nil, err
	}
	all, err := layout.InventoryFiles(data, most)
	if err != nil {
		return nil, err
	}
	files = make([]FileDetail, 0, len(all))
	for p, f := range all {
		files = append(files, FileDetail{Path: p, InventoryFile: f})
	}
	slices.SortFunc(files, func(a, b FileDetail) int { return strings.Compare(a.Path, b.Path) })
	if most == 0 { // it may be long
		return files, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil || len(l.kept) >= mostKept {
		l.kept = map[listing][]FileDetail{}
	}
	l.kept[key] = slices.Clone(files)
	return files, nil
}
