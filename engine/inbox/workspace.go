package inbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

const (
	asidePrefix  = ".bagpipe-" // followed by the item's identifier
	setAsideName = ".rejected" // where a drop on another file system is kept
)

// setsName is the folder in a folder of drops in which sets are gathered: .bagpipe-sets/ID.
const setsName = asidePrefix + "sets"

// workspace spells the paths of a workspace.
type workspace struct{ root string }

func (w workspace) path(parts ...string) string {
	return filepath.Join(append([]string{w.root}, parts...)...)
}

// shorten writes a path for the journal: relative where it lies in the
// workspace, so that the workspace may be moved.
func (w workspace) shorten(path string) string {
	if rest, ok := strings.CutPrefix(path, w.root+"/"); ok {
		path = rest
	}
	return layout.EncodePath(path)
}

func (w workspace) lengthen(s string) (string, error) {
	path, err := layout.DecodePath(s)
	if err != nil || path == "" || filepath.IsAbs(path) {
		return path, err
	}
	return w.path(path), nil
}

func (w workspace) shortenAll(paths []string) []string {
	var short []string
	for _, p := range paths {
		short = append(short, w.shorten(p))
	}
	return short
}

func (w workspace) lengthenAll(short []string) ([]string, error) {
	var paths []string
	for _, s := range short {
		p, err := w.lengthen(s)
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	return paths, nil
}

func (w workspace) intakeOf(id layout.ItemID) string { return w.path(layout.IntakeDir, string(id)) }

func (w workspace) sourceOf(id layout.ItemID, name string) string {
	return filepath.Join(w.intakeOf(id), layout.SourceDir, name)
}

func (w workspace) itemSource(id layout.ItemID) string {
	return w.path(layout.ItemDir(id), layout.SourceDir)
}

func (w workspace) versionDir(item layout.ItemID, n int) string {
	return w.path(layout.VersionDir(item, n))
}

func (w workspace) inIntake(id string) bool {
	if _, err := layout.ParseItemID(id); err != nil {
		return false
	}
	_, err := os.Lstat(w.path(layout.IntakeDir, id))
	return err == nil
}

// locked runs act while no other process of the workspace runs one: of several
// engines that start at once, one adopts.
func (w workspace) locked(act func() error) (err error) {
	if err := os.MkdirAll(w.path(layout.StateDir), content.DirPerm); err != nil {
		return err
	}
	lock := flock.New(w.path(intakeLockFile), flock.SetPermissions(filePerm))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	return act()
}

func (w workspace) syncIntake() error {
	intake := w.path(layout.IntakeDir)
	if err := disk.MkdirAll(intake, content.DirPerm); err != nil {
		return err
	}
	return disk.SyncFS(intake)
}

// discardIntake removes an intake folder that holds no drop. The source folder
// goes first and only if empty: a drop in it stops everything.
func discardIntake(dir string) error {
	if names, err := disk.Names(dir); err == nil && len(names) == 1 && names[0].Name == journalFile { // most have no more
		if err := layout.RemoveIfThere(filepath.Join(dir, journalFile)); err != nil {
			return err
		}
		if err := unix.Rmdir(dir); err == nil {
			return nil
		}
	}
	if err := layout.RemoveIfThere(filepath.Join(dir, layout.SourceDir)); err != nil {
		return err
	}
	if err := disk.RemoveTree(filepath.Join(dir, copyingDir)); err != nil {
		return err
	}
	if err := layout.RemoveIfThere(filepath.Join(dir, journalFile)); err != nil {
		return err
	}
	if err := removeRewrites(dir); err != nil {
		return err
	}
	return layout.RemoveIfThere(dir)
}

// removeRewrites removes the temporary files of journals that a kill left.
func removeRewrites(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "."+journalFile) {
			continue
		}
		if err := layout.RemoveIfThere(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
