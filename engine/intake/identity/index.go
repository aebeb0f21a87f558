package identity

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// Index keeps the keys current, from the first admission that asks for them.
type Index struct {
	ledger *ledger.Ledger

	turn    sync.Mutex           // held while keys is filled
	keys    atomic.Pointer[Keys] // nil until an admission asks
	growing atomic.Pointer[Keys] // the same from when its filling began
}

// New gives an index that is not loaded.
func New(l *ledger.Ledger) *Index { return &Index{ledger: l} }

// Load gives the index, loading it when it is asked for first.
func (x *Index) Load(ctx context.Context) (*Keys, error) {
	x.turn.Lock()
	defer x.turn.Unlock()
	if k := x.keys.Load(); k != nil {
		return k, nil
	}
	// Commits from now on are noted while the rest is read.
	k := &Keys{ledger: x.ledger}
	x.growing.Store(k)
	if err := x.fill(ctx, k); err != nil {
		x.growing.Store(nil)
		return nil, fmt.Errorf("look what is known of the items: %w", err)
	}
	x.keys.Store(k)
	return k, nil
}

func (x *Index) fill(ctx context.Context, k *Keys) error {
	v, err := x.ledger.Store.Tip()
	if err != nil {
		return err
	}
	since := x.readFile(k)
	n, turn := 0, sync.Mutex{}
	err = v.Folders(ctx, since, layout.ItemsDir, ledger.ItemDepth, func(folder gitstore.Folder) error {
		id, rest, ok := layout.ItemOfPath(folder.Path)
		if !ok || rest != "" {
			return nil
		}
		data, err := folder.ReadFile(layout.ManifestJSON)
		if err != nil || data == nil {
			return err
		}
		if m, err := layout.DecodeManifest(data); err == nil {
			k.Add(id, KeysOf(&m))
		}
		turn.Lock()
		defer turn.Unlock()
		n++
		return nil
	})
	if err == nil {
		err = ledger.EachRetired(ctx, v, since, func(id layout.ItemID, _ layout.Standing) error {
			f, err := ledger.StandingOf(x.ledger, v, id)
			if m, errDecode := layout.DecodeManifest(f.Manifest); err == nil && errDecode == nil {
				k.Add(id, KeysOf(&m))
			}
			return err
		})
	}
	if err == nil && n > ledger.FewChanges && !x.ledger.ReadOnly {
		x.writeFile(k, v.Tree())
	}
	return err
}

// noteKnown adds what was committed; an observer.
func (x *Index) Note(a gitstore.Advance) {
	k := x.growing.Load()
	if k == nil {
		return
	}
	for _, c := range a.Changes {
		id, rest, ok := layout.ItemOfPath(c.Path)
		if !ok || c.Deleted || rest != layout.ManifestJSON {
			continue
		}
		if m, err := layout.DecodeManifest(c.Data); err == nil {
			k.Add(id, KeysOf(&m))
		}
	}
}
