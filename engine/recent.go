package engine

import (
	"path"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// recentRecords holds the records of the items that changed last, as the index
// knows them. Their trees and blobs have just been written, so that to read them
// from the store again, two or three times a step, would take longer than the step.
type recentRecords struct {
	mu    sync.Mutex // guards the rest
	items map[layout.ItemID]files
	order []layout.ItemID // a ring: the one at next is forgotten first
	next  int
}

const maxRecent = 1024

func (r *recentRecords) put(id layout.ItemID, f files) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.items == nil {
		r.items, r.order = map[layout.ItemID]files{}, make([]layout.ItemID, maxRecent)
	}
	if _, there := r.items[id]; !there {
		delete(r.items, r.order[r.next])
		r.order[r.next] = id
		r.next = (r.next + 1) % maxRecent
	}
	r.items[id] = f
}

// drop forgets an item whose records are not both there.
func (r *recentRecords) drop(id layout.ItemID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.items, id)
}

func (r *recentRecords) get(id layout.ItemID) (files, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.items[id]
	return f, ok
}

// recentReader reads an item's records from memory where they are there, and all
// else from a view.
type recentReader struct {
	gitstore.Reader
	dir   string
	files files
}

// recent gives a reader of an item's records as the index knows them.
func (e *Engine) recent(v gitstore.Reader, id layout.ItemID) gitstore.Reader {
	if f, ok := e.records.get(id); ok {
		return recentReader{v, layout.ItemDir(id), f}
	}
	return v
}

func (r recentReader) ReadFile(name string) ([]byte, error) {
	if dir, file := path.Split(name); dir == r.dir+"/" {
		switch file {
		case layout.ManifestJSON:
			return r.files.manifest, nil
		case layout.ExecutionJSON:
			return r.files.execution, nil
		}
	}
	return r.Reader.ReadFile(name)
}
