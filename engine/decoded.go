package engine

import (
	"bytes"
	"sync"

	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// decodedRecords holds the records of the items that changed last in decoded form.
// A step's two commits read its item five times, and decoding takes longer than
// all else that is done with the record. Whoever takes a record owns it, and may
// change it; what it keeps then must be what the bytes say.
type decodedRecords struct {
	mu    sync.Mutex // guards the rest
	items lately[decoded]
}

// decoded are records beside the bytes they were decoded from or encoded to.
type decoded struct {
	executionJ []byte
	execution  *state.Execution // nil while somebody has it
	manifestJ  []byte
	manifest   layout.Manifest // shared: its maps are never changed
}

// take gives what data decodes to; it is the caller's.
func (d *decodedRecords) take(id layout.ItemID, data []byte) (*state.Execution, error) {
	d.mu.Lock()
	if has := d.items.get(id); has != nil && has.execution != nil && bytes.Equal(has.executionJ, data) {
		x := has.execution
		has.execution = nil
		d.mu.Unlock()
		return x, nil
	}
	d.mu.Unlock()
	return state.Decode(data)
}

// keep takes a record that data is the encoding of.
func (d *decodedRecords) keep(id layout.ItemID, data []byte, x *state.Execution) {
	x.Manifest, x.Around = nil, nil
	d.mu.Lock()
	defer d.mu.Unlock()
	has := d.items.entry(id)
	has.executionJ, has.execution = data, x
}

// decodeManifest gives what data decodes to, to be read only.
func (d *decodedRecords) decodeManifest(id layout.ItemID, data []byte) (layout.Manifest, error) {
	d.mu.Lock()
	if has := d.items.get(id); has != nil && has.manifestJ != nil && bytes.Equal(has.manifestJ, data) {
		m := has.manifest
		d.mu.Unlock()
		return m, nil
	}
	d.mu.Unlock()
	m, err := layout.DecodeManifest(data)
	if err != nil {
		return m, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	has := d.items.entry(id)
	has.manifestJ, has.manifest = data, m
	return m, nil
}

// scanned reads records of which each is looked at once. It is one goroutine's, and
// a record or item it gave is valid until the next.
type scanned struct {
	scan state.Scan
	item queue.Item
}

// decodeManifest reads of most manifests the head alone, which is all that is wanted.
func (s *scanned) decodeManifest(_ layout.ItemID, data []byte) (layout.Manifest, error) {
	if m, ok := layout.ManifestHead(data); ok {
		return m, nil
	}
	return layout.DecodeManifest(data)
}

func (s *scanned) take(_ layout.ItemID, data []byte) (*state.Execution, error) {
	return s.scan.Decode(data)
}

func (s *scanned) keep(layout.ItemID, []byte, *state.Execution) {}
