package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: of an object in place versions/N keeps the records and what steps made of
// version N; the bytes of the object were never here. While versions/N is there and the item
// is at version N, no step of the item begins. A crash leaves what KeepVersion goes on with,
// and what UnkeepVersion takes back.

// madeParts is what steps made of a version.
func madeParts() []string { return []string{layout.DerivedDir, layout.ContentDir} }

// CloseVersion closes an item for its next version, with copies of its records.
func (fo *Folders) CloseVersion(item layout.ItemID, n int, records map[string][]byte) error {
	dir := fo.path(layout.VersionDir(item, n))
	if err := disk.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for name, data := range records {
		if err := disk.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// KeepVersion moves what steps made of version n into versions/N.
func (fo *Folders) KeepVersion(item layout.ItemID, n int) error {
	return fo.moveMade(fo.path(layout.ItemDir(item)), fo.path(layout.VersionDir(item, n)))
}

// UnkeepVersion takes an item back that was closed and got no next version.
func (fo *Folders) UnkeepVersion(item layout.ItemID, n int) error {
	dir := fo.path(layout.VersionDir(item, n))
	if err := fo.moveMade(dir, fo.path(layout.ItemDir(item))); err != nil {
		return err
	}
	return disk.RemoveTree(dir)
}

func (fo *Folders) moveMade(from, to string) error {
	for _, part := range madeParts() {
		_, err := os.Lstat(filepath.Join(from, part))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = disk.Rename(filepath.Join(from, part), filepath.Join(to, part))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
