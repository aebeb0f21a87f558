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
	items lately[files]
}

func (r *recentRecords) put(id layout.ItemID, f files) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.items.entry(id) = f
}

// drop forgets an item whose records are not both there.
func (r *recentRecords) drop(id layout.ItemID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.items.get(id); f != nil {
		*f = files{}
	}
}

func (r *recentRecords) get(id layout.ItemID) (files, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.items.get(id)
	if f == nil || f.manifest == nil {
		return files{}, false
	}
	return *f, true
}

// lately holds something of each of the items that came last.
type lately[V any] struct {
	of    map[layout.ItemID]*V
	order []layout.ItemID // a ring: the one at next is forgotten first
	next  int
}

const maxLately = 1024 // of some kilobytes each; far more than are under way at once

// entry gives the item's place, an empty one if it had none.
func (l *lately[V]) entry(id layout.ItemID) *V {
	if l.of == nil {
		l.of, l.order = map[layout.ItemID]*V{}, make([]layout.ItemID, maxLately)
	}
	if l.of[id] == nil {
		delete(l.of, l.order[l.next])
		l.order[l.next] = id
		l.next = (l.next + 1) % maxLately
		l.of[id] = new(V)
	}
	return l.of[id]
}

// get gives nil when the item has no place.
func (l *lately[V]) get(id layout.ItemID) *V { return l.of[id] }

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
