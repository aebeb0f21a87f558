package audit

import (
	"bytes"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// reader is what one goroutine reads commits with. The records that the last events made it has
// in decoded form: the next commit of an item begins from them.
type reader struct {
	*gitstore.Scan
	records state.Scan // decodes what is of use for one commit
	items   map[layout.ItemID]*last
	doubted map[layout.ItemID]bool // see Auditor.twice
}

// last is what the last commit of an item left, as far as it was asked for.
type last struct {
	execution, manifest []byte
	x                   *state.Execution // nil: somebody took it
	m                   layout.Manifest
	outline             state.Outline // of the record that was read last
}

// mostItems bounds the items of a reader, some kilobytes each: most commits of an item follow one another
// closely, and four times as many cost the collector more than their decoding saves.
const mostItems = 1 << 12

func newReader(reading *gitstore.Scanning) *reader {
	return &reader{Scan: reading.Scan(), items: map[layout.ItemID]*last{}, doubted: map[layout.ItemID]bool{}}
}

func (r *reader) of(id layout.ItemID) *last {
	l := r.items[id]
	if l == nil {
		if len(r.items) >= mostItems { // all go: the next commits need others
			clear(r.items)
		}
		l = &last{}
		r.items[id] = l
	}
	return l
}

// after decodes of a record what is not as in the one before it, where that was the last one read of
// the item; else all of it. o is its outline.
func (r *reader) after(id layout.ItemID, before, now []byte) (x *state.Execution, o *state.Outline, err error) {
	o = &r.of(id).outline
	if !o.Of(before) {
		*o = state.Outline{}
	}
	x, err = r.records.DecodeNew(now, o)
	return x, o, err
}

// take gives what an execution record decodes to, which is the caller's; kept: events made it, and
// it encodes to that record.
func (r *reader) take(id layout.ItemID, data []byte) (x *state.Execution, kept bool, err error) {
	if l := r.items[id]; l != nil && l.x != nil && bytes.Equal(l.execution, data) {
		x, l.x = l.x, nil
		return x, true, nil
	}
	x, err = state.Decode(data)
	return x, false, err
}

// keep keeps what data decodes to, as a decoded record or one that events made of it.
func (r *reader) keep(id layout.ItemID, data []byte, x *state.Execution) {
	l := r.of(id)
	l.execution, l.x = data, x
}

// manifest gives of what a manifest decodes to what layout.ManifestHead gives, to be read only.
func (r *reader) manifest(id layout.ItemID, data []byte) (layout.Manifest, error) {
	if l := r.items[id]; l != nil && l.manifest != nil && bytes.Equal(l.manifest, data) {
		return l.m, nil
	}
	m, ok := layout.ManifestHead(data)
	if !ok {
		var err error
		if m, err = layout.DecodeManifest(data); err != nil {
			return m, err
		}
	}
	l := r.of(id)
	l.manifest, l.m = data, m
	return m, nil
}
