package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/sync"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// halfCloned reports whether dir is what a Clone left that was killed: the name of the site comes
// last, and before it nothing is taken in or done there.
func halfCloned(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, layout.RepositoryDir+".restoring")); err == nil {
		return true
	}
	name, clone := gitstore.SiteOf(dir)
	return clone && name == ""
}

// Clone makes a second workspace, a site of that name, of the history at url, which becomes
// its remote origin. It has the records of the items and not their bytes. dir must not be
// there, or be empty, as one that was killed at once leaves it; what is made is removed again where the clone is refused.
func Clone(ctx context.Context, url, dir string, site layout.Name, o Options) (err error) {
	entries, noFolder := os.ReadDir(dir)
	if _, err := os.Lstat(dir); err == nil && (noFolder != nil || len(entries) > 0) {
		if halfCloned(dir) {
			return fault.New(fault.Refused, fmt.Sprintf("%s was begun by a clone that was cut off, and holds nothing of its own", dir), fault.Remedy{Verb: fault.CloneAnew, Name: dir})
		}
		return fmt.Errorf("%s is there already", dir)
	}
	begun := func(_, git string) error { return gitstore.ConfigureClone(ctx, git) } // halfCloned knows it from its first moment
	if err := restore(ctx, "clone", url, dir, o, begun); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, disk.RemoveTree(dir))
		}
	}()
	names, err := gitstore.Folders(ctx, dir, layout.ItemsDir)
	if err != nil {
		return err
	}
	for _, name := range append(names, layout.ItemsDir) { // the bytes are not missed: they were never here
		if err := disk.MkdirAll(filepath.Join(dir, filepath.FromSlash(name)), 0o750); err != nil {
			return err
		}
	}
	if err := gitstore.AddRemote(ctx, dir, "origin", url); err != nil {
		return err
	}
	e, err := Open(ctx, dir, o)
	if err != nil {
		return err
	}
	return errors.Join(sync.New(e.Ledger, e.Guard).Name(ctx, site), e.Close())
}
