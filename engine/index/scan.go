package index

import (
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Scanned reads records of which each is looked at once. It is one goroutine's, and
// a record or item it gave is valid until the next.
type Scanned struct {
	scan state.Scan
	item queue.Item
}

// Head reads of most manifests the head alone.
func (s *Scanned) Head(_ layout.ItemID, data []byte) (layout.Manifest, error) {
	if m, ok := layout.ManifestHead(data); ok {
		return m, nil
	}
	return layout.DecodeManifest(data)
}

func (s *Scanned) Take(_ layout.ItemID, data []byte) (*state.Execution, error) {
	return s.scan.Decode(data)
}

func (s *Scanned) Keep(layout.ItemID, []byte, *state.Execution) {}
