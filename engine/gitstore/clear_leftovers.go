package gitstore

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"bagpipe/engine/gitstore/internal/maintain"
	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/ref"
	"bagpipe/engine/gitstore/internal/repo"
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
