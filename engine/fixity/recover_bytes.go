package fixity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"bagpipe/engine/fault"
	"bagpipe/engine/inbox"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

// placeBytes puts the object of a bag into its item's folder: as source/ where it is what was
// dropped, which its digest proves, and as content/ otherwise. What is answered is which; "":
// neither, as the object had no inventory. A bag's files are moved, not copied.
func (r *recovery) placeBytes(ctx context.Context, b *bagged, bag string) (where string, err error) {
	data := b.files[layout.ItemDir(b.id)+"/"+layout.InventoryJSON]
	if data == nil {
		return "", nil
	}
	inventory, err := layout.DecodeInventory(data)
	if err != nil {
		return "", err
	}
	dir := r.ledger.Path(layout.ItemDir(b.id))
	if err := r.clear(b.id, dir); err != nil {
		return "", err
	}
	made := filepath.Join(dir, layout.ContentDir)
	if err := unbag(bag, made, &inventory); err != nil {
		return "", err
	}
	name, err := layout.DecodePath(b.manifest.Source.Name)
	if err != nil {
		return "", err
	}
	dropped := made
	if b.manifest.Source.Kind == "file" {
		dropped = filepath.Join(made, name)
	}
	sum, err := inbox.Digest(ctx, dropped)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, inbox.ErrGone) {
		return "", err
	}
	where = layout.ContentDir
	if err == nil && sum.Digest == b.manifest.Source.Digest {
		where = layout.SourceDir
		if err := os.Mkdir(filepath.Join(dir, where), 0o755); err != nil {
			return "", err
		}
		if err := os.Rename(dropped, filepath.Join(dir, where, name)); err != nil {
			return "", err
		}
		if err := disk.RemoveTree(made); err != nil {
			return "", err
		}
	} else if _, _, err := compare(ctx, made, nil, &inventory, nil); err != nil {
		return "", err
	}
	return where, disk.SyncFS(dir)
}

// markOf is the file that says that a recovery made what lies in an item's folder.
func (r *recovery) markOf(id layout.ItemID) string {
	return r.ledger.Path(layout.StateDir + "/recovering/" + string(id))
}

// clear makes room for an item's bytes: it removes what a recovery that was killed left. Files
// of anything else, such as of an item that the history lost, are nobody's to remove.
func (r *recovery) clear(id layout.ItemID, dir string) error {
	mark := r.markOf(id)
	_, err := os.Lstat(mark)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if name, err := someFile(dir); err != nil || name != "" {
			return errors.Join(err, fault.New(fault.Refused, fmt.Sprintf("its folder holds files that the history does not know, such as %s; move them away, or recover its records alone", layout.EncodePath(name))))
		}
	}
	if err := disk.MkdirAll(filepath.Dir(mark), 0o750); err != nil {
		return err
	}
	if err := disk.WriteFile(mark, nil, 0o640); err != nil {
		return err
	}
	return disk.RemoveTree(dir)
}

// someFile names a file in an item's folder that is no copy of a record; "": there is none.
func someFile(dir string) (found string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == dir {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if filepath.Dir(path) == dir && filepath.Ext(path) == ".json" {
			return nil
		}
		if found, err = filepath.Rel(dir, path); err != nil {
			return err
		}
		return fs.SkipAll
	})
	return found, err
}

// unbag moves the files of an object out of its bag, by the inventory.
func unbag(bag, to string, inventory *layout.Inventory) error {
	var names []string
	for name := range maps.Keys(inventory.Files) {
		raw, err := layout.DecodePath(name)
		if err != nil {
			return err
		}
		if !filepath.IsLocal(filepath.FromSlash(raw)) {
			return damage("the inventory has a path that is none: " + name)
		}
		names = append(names, raw)
	}
	slices.Sort(names)
	at, is := steps.WhereInBag(bag, names)
	if !is {
		return damage(fmt.Sprintf("the bag does not hold the %d files of its inventory", len(names)))
	}
	for _, name := range names {
		path := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(bag, filepath.FromSlash(at(name))), path); err != nil {
			return err
		}
	}
	return nil
}
