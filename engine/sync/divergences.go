package sync

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Diverged is a step of an item that two sites did with other outputs, though they were given
// the same.
type Diverged struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	state.Divergence
	By []string `json:"by"` // the attempts, and who made them; the last counts
}

// Divergences lists those of all items, by item.
func Divergences(ctx context.Context, l *ledger.Ledger) ([]Diverged, error) {
	v, err := l.Store.Tip()
	if err != nil {
		return nil, err
	}
	plans := l.PlansAt(v)
	var mu sync.Mutex // guards all
	all := []Diverged{}
	err = v.Folders(ctx, gitstore.Hash{}, layout.ItemsDir, ledger.ItemDepth, func(f gitstore.Folder) error {
		data, err := f.ReadFile(layout.ExecutionJSON)
		if err != nil || !bytes.Contains(data, []byte(`"outputs"`)) {
			return err
		}
		x, err := state.Decode(data)
		if err != nil {
			return nil // it is held, and says why
		}
		manifest, err := f.ReadFile(layout.ManifestJSON)
		if err != nil {
			return err
		}
		m, err := layout.DecodeManifest(manifest)
		if err != nil {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		for _, d := range state.Divergences(x, plans, m.Source.Digest) {
			found := Diverged{Item: x.Item, Collection: m.Collection, Label: m.Label, Divergence: d}
			_, s := x.Find(d.Workflow, d.Step)
			for _, k := range s.Keys() {
				if a := s.Attempts[k]; a.State == state.Completed && !x.TakenBack(d.Workflow, d.Step, k) {
					found.By = append(found.By, k.String()+" of "+a.Runner+a.By)
				}
			}
			all = append(all, found)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b Diverged) int {
		return strings.Compare(string(a.Item)+a.Workflow+string(a.Step), string(b.Item)+b.Workflow+string(b.Step))
	})
	return all, err
}
