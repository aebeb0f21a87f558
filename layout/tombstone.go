package layout

import (
	"slices"
	"time"
)

// Disposed is what a manifest says of an item whose bytes were disposed of: it is a tombstone
// then, and stays one.
type Disposed struct {
	At        time.Time         `json:"at"`
	By        string            `json:"by"` // who had it done
	Reason    string            `json:"reason"`
	Authority string            `json:"authority,omitempty"` // by which it was done: a schedule, a law, a letter
	Proposal  string            `json:"proposal"`            // the key of a file in disposals/
	Voices    []string          `json:"voices"`              // who proposed and approved it
	Inventory *InventorySummary `json:"inventory,omitempty"` // of the object that was
	Removed   []string          `json:"removed"`             // TARGET, or a folder of the item: where bytes were
	History   []string          `json:"history,omitempty"`   // which metadata the history keeps
}

// Tombstone is what is left of a manifest: what the item was, and not what it was like.
func (m Manifest) Tombstone(d Disposed) Manifest {
	d.Inventory, d.History = m.Inventory, nil
	for key := range m.Metadata {
		d.History = append(d.History, "metadata."+key)
	}
	if m.Inventory != nil {
		d.History = append(d.History, "names, sizes and digests of files, in "+InventoryJSON)
	}
	slices.Sort(d.History)
	m.Metadata, m.Quality, m.Inventory, m.Disposed = nil, nil, nil, &d
	return m
}

// DisposalsDir holds proposals to dispose of items, KEY.json, and beside each, in a folder of
// its key, what people said: ADDRESS.json.
const DisposalsDir = "disposals"
