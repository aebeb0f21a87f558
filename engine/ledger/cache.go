package ledger

import (
	"bytes"
	"path"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// decodedRecords holds the records of the items that changed last in decoded form.
// A step's two commits read its item five times, and decoding takes longer than
// all else that is done with the record. Whoever takes a record owns it, and may
// change it; what it keeps then must be what the bytes say.
type decodedRecords struct {
	mu    sync.Mutex     // guards the rest
	items lately[Record] // Execution is nil while somebody has it; Manifest is shared, its maps are never changed
}

// Take gives what data decodes to; it is the caller's.
func (d *decodedRecords) Take(id layout.ItemID, data []byte) (*state.Execution, error) {
	d.mu.Lock()
	if has := d.items.get(id); has != nil && has.Execution != nil && bytes.Equal(has.Committed.Execution, data) {
		x := has.Execution
		has.Execution = nil
		d.mu.Unlock()
		return x, nil
	}
	d.mu.Unlock()
	return state.Decode(data)
}

// Keep takes a record that data is the encoding of.
func (d *decodedRecords) Keep(id layout.ItemID, data []byte, x *state.Execution) {
	x.Manifest, x.Around = nil, nil
	d.mu.Lock()
	defer d.mu.Unlock()
	has := d.items.entry(id)
	has.Committed.Execution, has.Execution = data, x
}

// Head is DecodeManifest where the head of a manifest does, as layout.ManifestHead reads it: nothing is decoded for it that
// nobody has asked for.
func (d *decodedRecords) Head(id layout.ItemID, data []byte) (layout.Manifest, error) {
	if m, has := d.manifest(id, data); has {
		return m, nil
	}
	if m, ok := layout.ManifestHead(data); ok {
		return m, nil
	}
	return d.DecodeManifest(id, data)
}

// manifest gives what data decodes to where it was decoded before.
func (d *decodedRecords) manifest(id layout.ItemID, data []byte) (m layout.Manifest, has bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if is := d.items.get(id); is != nil && is.Committed.Manifest != nil && bytes.Equal(is.Committed.Manifest, data) {
		return is.Manifest, true
	}
	return m, false
}

// DecodeManifest gives what data decodes to, to be read only.
func (d *decodedRecords) DecodeManifest(id layout.ItemID, data []byte) (layout.Manifest, error) {
	if m, has := d.manifest(id, data); has {
		return m, nil
	}
	m, err := layout.DecodeManifest(data)
	if err != nil {
		return m, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	has := d.items.entry(id)
	has.Committed.Manifest, has.Manifest = data, m
	return m, nil
}

// recentRecords holds the records of the items that changed last, as the index
// knows them. Their trees and blobs have just been written, so that to read them
// from the store again, two or three times a step, would take longer than the step.
type recentRecords struct {
	mu    sync.Mutex // guards the rest
	items lately[Records]
}

func (r *recentRecords) Put(id layout.ItemID, f Records) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.items.entry(id) = f
}

// Drop forgets an item whose records are not both there.
func (r *recentRecords) Drop(id layout.ItemID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.items.get(id); f != nil {
		*f = Records{}
	}
}

func (r *recentRecords) get(id layout.ItemID) (Records, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.items.get(id)
	if f == nil || f.Manifest == nil {
		return Records{}, false
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
	files Records
}

// Recent gives a reader of an item's records as the index knows them.
func (l *Ledger) Recent(v gitstore.Reader, id layout.ItemID) gitstore.Reader {
	if f, ok := l.Latest.get(id); ok {
		return recentReader{v, layout.ItemDir(id), f}
	}
	return v
}

func (r recentReader) ReadFile(name string) ([]byte, error) {
	if dir, file := path.Split(name); dir == r.dir+"/" {
		switch file {
		case layout.ManifestJSON:
			return r.files.Manifest, nil
		case layout.ExecutionJSON:
			return r.files.Execution, nil
		}
	}
	return r.Reader.ReadFile(name)
}
