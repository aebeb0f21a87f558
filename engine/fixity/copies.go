package fixity

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// The copies of an item.
const (
	Source  = "source"  // as dropped
	Content = "content" // the object as it stands now
	Derived = "derived" // the bag that was made of it, until it is cleaned up
	Deposit = "deposit" // its bag in the store
)

// record is an item as committed, for a check.
type record struct {
	*ledger.Record
	inventory *layout.Inventory // nil: not made yet
	targets   map[layout.Name]map[int]layout.DepositCopy
	pace      *pace
	deposited bool        // a deposit of its version was completed here
	elsewhere layout.Name // the site that deposited it, where this one did not
	stores    []string    // where bags of it may stand, those of its steps first
}

func (c *Checks) read(v gitstore.View, id layout.ItemID) (*record, error) {
	if last, retired, err := ledger.Stood(c.ledger, v, id); err != nil {
		return nil, err
	} else if retired {
		v = last
	}
	rec, err := c.ledger.Read(v, id, "")
	if err != nil {
		return nil, err
	}
	r, ever := &record{Record: rec}, false
	if rec.Manifest.Inventory != nil {
		data, err := v.ReadFile(layout.ItemDir(id) + "/" + layout.InventoryJSON)
		if err != nil {
			return nil, fmt.Errorf("item %s: %w", id.Short(), err)
		}
		inventory, err := layout.DecodeInventory(data)
		if err != nil {
			return nil, fmt.Errorf("item %s: %w", id.Short(), err)
		}
		r.inventory = &inventory
	}
	for _, name := range rec.Execution.Names() {
		w := rec.Execution.Workflows[name]
		plan, err := c.ledger.PinnedPlan(v, w.Digest)
		if err != nil {
			return nil, err
		}
		for i := range plan.Steps {
			if plan.Steps[i].Robot != "deposit" {
				continue
			}
			if own, _ := plan.Steps[i].With["store"].(string); own != "" {
				r.stores = append(r.stores, settings.Below(c.ledger.Root, own))
			}
			here, other := depositedBy(c.ledger.Site, w.Steps[layout.Name(plan.Steps[i].Name)])
			r.deposited = r.deposited || here && !w.Created.Before(rec.Manifest.Since)
			r.elsewhere, ever = cmp.Or(r.elsewhere, other), ever || here
		}
	}
	if ever {
		r.elsewhere = ""
	}
	d, err := ledger.ReadDeposits(v, id)
	if err != nil {
		return nil, err
	}
	r.targets = d.Targets
	r.stores = append(r.stores, c.settings.Current().Settings.StoreDir(c.ledger.Root))
	return r, nil
}

// depositedBy reports whether this site completed a deposit once, and which other site did: its bag
// stands in a store of that site's. A deposit that was reset since counts: the bag stays.
func depositedBy(site state.Site, s *state.StepRecord) (here bool, other layout.Name) {
	for _, a := range s.Attempts {
		if a.State != state.Completed {
			continue
		}
		if by := state.SiteOf(a.Runner); site == (state.Site{}) || site.Mine(by) {
			here = true
		} else {
			other = cmp.Or(by, anotherSite)
		}
	}
	return here, other
}

// anotherSite stands for a site that had no name when it deposited.
const anotherSite = "(without a name then)"

// bag finds the newest bag of a version of the item. One that was deposited and is not
// there in a store that is is damage; a store that is not there is not, nor is it missed by a
// version that was not deposited yet, or by another site.
func (r *record) bag(version int) (dir string, err error) {
	for _, store := range r.stores {
		if dir, is := steps.Deposited(store, r.Manifest.Item, version); is {
			return dir, nil
		}
	}
	if r.elsewhere != "" || version == max(r.Manifest.Version, 1) && !r.deposited {
		return "", fs.ErrNotExist
	}
	for _, store := range r.stores {
		if _, err := os.Lstat(filepath.Join(store, layout.StoreFile)); err != nil {
			return "", fault.New(fault.Busy, fmt.Sprintf("the store %s has no %s: is it mounted?", layout.EncodePath(store), layout.StoreFile))
		}
	}
	return "", fs.ErrNotExist
}

// object is where the item's object stands; fs.ErrNotExist where it does not. None is empty.
func (c *Checks) object(m layout.Manifest) (string, error) {
	dir, err := c.folder.ObjectOf(m)
	if err == nil && m.Source.Place != nil {
		_, err = c.folder.Found(m)
	}
	if err != nil {
		return dir, err
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return dir, err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) == 0 {
		err = fs.ErrNotExist
	}
	return dir, err
}

// dropped is what was dropped, as it lies in source/.
func (c *Checks) dropped(m layout.Manifest) (string, error) {
	if m.Source.Place != nil {
		return c.folder.Found(m)
	}
	name, err := layout.DecodePath(m.Source.Name)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.ledger.Path(layout.ItemDir(m.Item)), layout.SourceDir, name)
	_, err = os.Lstat(path)
	return path, err
}

// shown is a path as records have it.
func (c *Checks) shown(path string) string {
	if rel, err := filepath.Rel(c.ledger.Root, path); err == nil && filepath.IsLocal(rel) {
		return layout.EncodePath(filepath.ToSlash(rel))
	}
	return layout.EncodePath(path)
}

func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
