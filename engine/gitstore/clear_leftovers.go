package gitstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bagpipe/engine/gitstore/internal/maintain"
	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/ref"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// clearLeftovers removes the leftovers of dead Bagpipe processes. It holds the turn lock, so
// no living one is publishing; the locks of git programs stay.
func clearLeftovers(r *repo.Repo) (err error) {
	turn, err := r.TakeTurn()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.Release()) }()
	return errors.Join(ref.ClearLock(r), clearPacks(r), clearTemp(r), ref.CutTornReflogs(r))
}

// clearPacks looks at the packs that were being published. A whole one stays: a
// branch may need it. A half one was never published, for it is synced first.
func clearPacks(r *repo.Repo) error {
	keeps, err := filepath.Glob(filepath.Join(r.PackDir(), "pack-*.keep"))
	if err != nil {
		return err
	}
	for _, keep := range keeps {
		text, err := r.FS.ReadFile(keep)
		if err != nil {
			return err
		}
		if string(text) != keepMark {
			continue // a person's or git's
		}
		base := strings.TrimSuffix(keep, ".keep")
		whole, err := packIsWhole(r, base)
		if err != nil {
			return err
		}
		if !whole {
			r.Log.Warn("removed a half-written pack", "pack", base)
			if err := (&packFiles{repo: r, base: base}).remove(); err != nil {
				return err
			}
			continue
		}
		if err := r.FS.Remove(keep); err != nil {
			return err
		}
	}
	return nil
}

// packIsWhole checks a pack and its index against their checksums.
func packIsWhole(r *repo.Repo, base string) (bool, error) {
	pack, err := r.FS.ReadFile(base + ".pack")
	if err == nil {
		var index []byte
		if index, err = r.FS.ReadFile(base + ".idx"); err == nil {
			return odb.Whole(pack, index), nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return false, fmt.Errorf("check pack %s: %w", base, err)
}

// clearTemp removes the files that are written under the turn lock and were not yet
// renamed, and makes our mark.
func clearTemp(r *repo.Repo) error {
	list, err := r.FS.ReadDir(r.Temp(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range list {
		if name := e.Name(); !strings.HasPrefix(name, "pack-") && name != maintain.HintsTemp {
			continue // our mark, and Maintain's files: it clears them itself
		}
		if err := r.Remove(r.Temp(e.Name())); err != nil {
			return err
		}
	}
	return makeKeep(r)
}

// gitsAfter is how old a file is that a git which was killed left: git writes to such a file all
// the time, and is given no hour.
const gitsAfter = time.Hour

// gitsLeftovers are the files that a git program writes objects to before they have their names,
// and the reports of a git fast-import that found no room.
func gitsLeftovers(root string) (all []string) {
	for _, pattern := range []string{"objects/pack/tmp_*", "objects/??/tmp_obj_*", "fast_import_crash_*"} {
		found, _ := filepath.Glob(filepath.Join(root, layout.RepositoryDir, pattern)) // the pattern is one
		all = append(all, found...)
	}
	return all
}

// cleared runs a git program that writes objects, and removes what it leaves where it fails: on a
// full disk each try would take what room there is. What a git left that was killed before
// goes first.
func cleared(root string, run func() error) error {
	before := gitsLeftovers(root)
	var errs []error
	for _, path := range before {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > gitsAfter && unused(path) {
			errs = append(errs, layout.RemoveIfThere(path))
		}
	}
	err := run()
	if err == nil {
		return errors.Join(errs...)
	}
	for _, path := range gitsLeftovers(root) {
		if !slices.Contains(before, path) && unused(path) {
			errs = append(errs, layout.RemoveIfThere(path))
		}
	}
	return errors.Join(append([]error{err}, errs...)...)
}

// unused reports whether no process has a file open.
func unused(path string) bool {
	f, err := disk.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil { // another has it open, or the disk cannot tell
		return false
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}
