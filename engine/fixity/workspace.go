package fixity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/steps"
	"bagpipe/steps/target"
)

// Finding is what does not fit between a workspace and its records.
type Finding struct {
	Kind string        `json:"kind"`
	Item layout.ItemID `json:"item,omitempty"`
	Path string        `json:"path,omitempty"` // relative to the workspace or absolute, percent-encoded
	Text string        `json:"text"`
}

// The kinds of findings.
const (
	NoFolder     = "no-folder"     // an item without its folder
	NoBytes      = "no-bytes"      // an item of which neither source, object nor deposit is there
	NoDeposit    = "no-deposit"    // a deposit was made and is not in the store
	NoRecord     = "no-record"     // a folder of items/ that is no item's
	UnknownBag   = "unknown-bag"   // a bag in the store that is no item's
	BrokenRecord = "broken-record" // a record that cannot be read
	History      = "history"       // what git fsck finds
)

// Workspace compares what lies in the workspace and in its stores with the records, by names
// alone, and has git check the history. It reads no payload and records nothing. findings
// are in the order of the items, then of the folders.
func (c *Checks) Workspace(ctx context.Context, told func(Finding)) error {
	return comparison{c, told}.run(ctx)
}

// comparison is one look at a workspace; told hears its findings.
type comparison struct {
	*Checks
	told func(Finding)
}

func (c comparison) run(ctx context.Context) error {
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return err
	}
	known := map[layout.ItemID]int{} // the versions there are
	stores := map[string]bool{c.settings.Current().Settings.StoreDir(c.ledger.Root): true}
	item := func(v gitstore.View, id layout.ItemID) {
		r, err := c.read(v, id)
		if err != nil {
			known[id] = 0
			c.told(Finding{BrokenRecord, id, layout.ItemDir(id), ledger.Clip(ledger.Printable(err.Error()), ledger.MaxMessage)})
			return
		}
		if r.Manifest.Disposed != nil {
			known[id] = 0 // a bag that stands there still is told of by the next disposal
			return
		}
		known[id] = max(r.Manifest.Version, 1)
		for _, store := range r.stores {
			stores[store] = true
		}
		if f := c.absences(r); f != nil {
			c.told(*f)
		}
	}
	for it := range c.index.Loaded().Items() {
		if err := ctx.Err(); err != nil {
			return err
		}
		item(v, it.ID)
	}
	retired, err := ledger.FindRetired(ctx, v, "")
	if err != nil {
		return err
	}
	for _, id := range retired {
		last, is, err := ledger.Stood(c.ledger, v, id)
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if _, there := known[id]; is && !there {
			item(last, id)
		}
	}
	err = c.strangers(ctx, c.ledger.Path(layout.ItemsDir), func(name, dir string) *Finding {
		if _, is := known[layout.ItemID(name)]; is || name[0] == '.' { // its records are being written
			return nil
		}
		return &Finding{NoRecord, "", dir, "no record names this folder"}
	})
	for store := range stores {
		err = errors.Join(err, c.strangers(ctx, store, func(name, dir string) *Finding { return bagOf(known, name, dir) }))
	}
	return errors.Join(err, c.history(ctx))
}

// absences tells what of an item should be there and is not; nil: nothing.
func (c comparison) absences(r *record) *Finding {
	id := r.Manifest.Item
	dir := layout.ItemDir(id)
	if _, err := os.Lstat(c.ledger.Path(dir)); absent(err) {
		return &Finding{NoFolder, id, dir, "the item's folder is not there; its records are in the history, its bytes in a backup"}
	}
	if _, stored := r.targets[steps.StoreTarget]; r.deposited && len(r.targets) > 0 && !stored {
		return nil // on targets alone, which a look at names does not ask
	}
	if r.deposited {
		bag, err := r.bag(max(r.Manifest.Version, 1))
		switch {
		case absent(err):
			return &Finding{NoDeposit, id, dir, "a deposit was made, and is not in the store"}
		case err != nil:
			return &Finding{NoDeposit, id, dir, err.Error()}
		case bag != "":
			return nil
		}
	}
	_, object := c.object(layout.Manifest{Item: id})
	if _, err := c.dropped(r.Manifest); err != nil && object != nil {
		return &Finding{NoBytes, id, dir, "neither what was dropped nor the object is there"}
	}
	return nil
}

// bagOf judges a folder of the store, ID[-vN][-rN]. A copy that is being made begins with a
// dot, and is none.
func bagOf(known map[layout.ItemID]int, name, dir string) *Finding {
	if name[0] == '.' {
		return nil
	}
	id, n, _, is := target.ParsePlace(name)
	versions, there := known[id]
	switch {
	case !is || !there:
		return &Finding{UnknownBag, "", dir, "no item has this bag"}
	case versions > 0 && n > versions:
		return &Finding{UnknownBag, id, dir, fmt.Sprintf("the item has %d versions", versions)}
	}
	return nil
}

// fanDepth is how deep the folders of items, and of their bags, lie.
const fanDepth = 4

// strangers walks a tree of folders that lie below a fan of digits.
func (c comparison) strangers(ctx context.Context, root string, judge func(name, shown string) *Finding) error {
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) || err == nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			at := filepath.Join(dir, e.Name())
			switch {
			case depth == fanDepth:
				if f := judge(e.Name(), c.shown(at)); f != nil {
					c.told(*f)
				}
			case e.IsDir() && len(e.Name()) == 1:
				if err := walk(at, depth+1); err != nil {
					return err
				}
			case depth == 0 && path.Base(at) == layout.StoreFile:
			default:
				c.told(Finding{NoRecord, "", c.shown(at), "nothing of Bagpipe's is here"})
			}
		}
		return nil
	}
	return walk(root, 0)
}

// history has git look at every object.
func (c comparison) history(ctx context.Context) error {
	lines, err := gitstore.Fsck(ctx, c.ledger.Root, gitstore.Hash{}, gitstore.Hash{})
	slices.Sort(lines)
	for _, l := range lines {
		c.told(Finding{History, "", layout.RepositoryDir, ledger.Clip(ledger.Printable(l), ledger.MaxMessage)})
	}
	return err
}
