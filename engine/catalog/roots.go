package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"

	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/engine/roots"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// Catalog finds a catalog in force.
func (k *Keeper) Catalog(name layout.Name) (*roots.Catalog, error) {
	if c := k.settings.Current().Catalogs[name]; c != nil {
		return c, nil
	}
	return nil, fault.Unknown("catalog", name, " in "+layout.CatalogsDir+"/", maps.Keys(k.settings.Current().Catalogs))
}

// PlaceRoot is the root of a catalog; "" where there is none of the name.
func (k *Keeper) PlaceRoot(name layout.Name) (root string, trusting bool) {
	if c := k.settings.Current().Catalogs[name]; c != nil {
		return c.Root, c.Trusting()
	}
	return "", false
}

// Away says why the root of a catalog is not the one that its records are of, as a scan does; "": it is.
func (k *Keeper) Away(name layout.Name) (why string) {
	c, err := k.Catalog(name)
	if err != nil {
		return "" // it was removed
	}
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return err.Error()
	}
	root, err := readNode(v, name, "")
	if err != nil {
		if root, err = k.soundNode(name, "", err); err != nil {
			return err.Error()
		}
	}
	s := &scan{cat: c}
	if root != nil {
		s.old = tree{"": root}
	}
	_, why = s.away()
	return why
}

// Add writes catalogs/NAME.yaml and commits it.
func (k *Keeper) Add(ctx context.Context, c *roots.Catalog) error {
	now := k.settings.Current()
	if now.Catalogs[c.Name] != nil {
		return fault.New(fault.Refused, fmt.Sprintf("there is a catalog %s already; edit %s/%s.yaml", c.Name, layout.CatalogsDir, c.Name))
	}
	if err := k.settings.CheckCollection(c.Collection); err != nil {
		return err
	}
	if c.Workflow != "" && now.Workflows[c.Workflow] == nil {
		return ledger.NoWorkflow(c.Workflow)
	}
	if err := k.checkRoot(c); err != nil {
		return err
	}
	if err := warnOfRecords(k, c); err != nil {
		return err
	}
	file := fileOf(c.Name)
	text := fmt.Sprintf("# What lies in this folder is catalogued where it is; nothing is written there.\nschema: %d\nname: %s\nroot: %s\ncollection: %s\n",
		1, strconv.Quote(string(c.Name)), strconv.Quote(c.Root), strconv.Quote(string(c.Collection)))
	if c.Workflow != "" {
		text += "workflow: " + strconv.Quote(c.Workflow) + "\n"
	}
	if c.Trusting() {
		text += "trust: [size, mtime]\n"
	}
	if wrong, err := k.settings.CheckEdit(file, []byte(text)); err != nil {
		return err
	} else if wrong != nil {
		return fault.New(fault.Refused, wrong.Text)
	}
	if err := disk.MkdirAll(k.ledger.Path(layout.CatalogsDir), 0o777); err != nil {
		return err
	}
	if err := k.settings.PutSetting(ctx, file, nil, []byte(text), "added"); err != nil {
		return err
	}
	return k.settings.Sync(ctx)
}

// warnOfRecords tells of records of removed catalogs that a new one goes on with although they are of another folder, or
// does not go on with although they are of its own.
func warnOfRecords(k *Keeper, c *roots.Catalog) error {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return err
	}
	entries, err := v.List(layout.CatalogsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var st unix.Stat_t
	err = errors.Join(err, unix.Stat(c.Root, &st))
	device, wrong := deviceOf(c.Root)
	if err = errors.Join(err, wrong); err != nil {
		return fmt.Errorf("compare %s with records of removed catalogs: %w", layout.EncodePath(c.Root), err)
	}
	for _, e := range entries {
		name, err := layout.ParseName(e.Name)
		if err != nil || !e.IsDir || k.settings.Current().Catalogs[name] != nil {
			continue
		}
		root, err := readNode(v, name, "")
		if err != nil || root == nil { // a scan tells of what cannot be read
			continue
		}
		switch same := root.inode == st.Ino && root.device == device; {
		case name == c.Name && !same:
			k.ledger.Warn(fmt.Sprintf("there are records of a removed catalog %s, of a folder with another inode or file system, and a scan goes on with them; for another folder take another name", name))
		case name != c.Name && same:
			k.ledger.Warn(fmt.Sprintf("the removed catalog %s had this root, and a scan makes second items of its objects; its items go on in a catalog of its name", name))
		}
	}
	return nil
}

// checkRoot refuses a root that is no folder, or that lies in the workspace or in another
// catalog's root, or holds one of them.
func (k *Keeper) checkRoot(c *roots.Catalog) error {
	if info, err := os.Stat(c.Root); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the root of catalog %s: %w", c.Name, err)
	} else if err != nil || !info.IsDir() {
		return errors.Join(fault.New(fault.Refused, layout.EncodePath(c.Root)+" is no folder"), err)
	}
	if err := c.Alone(k.ledger.Root, k.settings.Current().Catalogs); err != nil {
		return fault.New(fault.Refused, err.Error())
	}
	return nil
}

// Remove removes catalogs/NAME.yaml, while no scan of it runs. What was catalogued stays in the history, and the
// items stay.
func (k *Keeper) Remove(ctx context.Context, name layout.Name) error {
	if _, err := k.Catalog(name); err != nil {
		return err
	}
	lock, err := k.lock(name)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	file := fileOf(name)
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return err
	}
	was, err := v.ReadFile(file)
	if err != nil {
		return err
	}
	if err := k.settings.PutSetting(ctx, file, was, nil, "removed"); err != nil {
		return err
	}
	return errors.Join(k.settings.Sync(ctx), k.noteFailure(name, nil))
}
