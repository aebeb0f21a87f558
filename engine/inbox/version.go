package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: a drop that is to be version N+1 of an item replaces what is in the
// item's folder. While it does,
//
//	items/3/f/a/9/ID/versions/N/version.json    names the drop
//	items/3/f/a/9/ID/versions/N/manifest.json   and inventory.json, as committed
//	items/3/f/a/9/ID/versions/N/source …        sidecars, derived and content, moved there
//	items/3/f/a/9/ID/source                     the drop, moved from the intake, last
//
// versions/N appears by one rename, with version.json in it, so of several drops one
// wins; from then on, until the manifest's version is no longer N, nobody may begin a
// step of the item. The journal names item and version before that. A crash before the
// commit leaves what Restore takes back, at the next start of the drop's admission;
// one after it leaves the drop promoted, which wants only Done. Restore may be called
// at any time, and again: it moves back what is in versions/N, and at the end that
// folder disappears by one rename, which frees the item.

// WaitsError keeps a drop in the intake until its item can take it.
type WaitsError struct{ Reason string }

func (w *WaitsError) Error() string { return w.Reason }

// versionFile is version.json; its fields stand in the order of their keys.
type versionFile struct {
	Drop    layout.ItemID `json:"drop"` // that replaced the version
	Item    layout.ItemID `json:"item"`
	Schema  int           `json:"schema"`
	Time    time.Time     `json:"time"`
	Version int           `json:"version"` // that is kept here
}

// versions moves what a new version replaces.
type versions struct {
	workspace
	now func() time.Time
}

// movedParts are what a version consists of, in the order in which it is moved away.
func movedParts() []string {
	return []string{layout.SidecarsDir, layout.DerivedDir, layout.ContentDir, layout.SourceDir}
}

// keptRecords are copies of committed files beside them.
func keptRecords() []string {
	return []string{layout.ManifestJSON, layout.InventoryJSON, layout.VersionJSON}
}

// previousDone waits for the end of the admission that made version n.
func (vs versions) previousDone(item layout.ItemID, n int) error {
	drop := item
	if n > 1 {
		v, err := vs.readVersion(item, n-1)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		drop = v.Drop
	}
	if drop != "" && content.Exists(filepath.Join(vs.intakeOf(drop), journalFile)) {
		return &WaitsError{fmt.Sprintf("version %d of item %s is still being taken in", n, item.Short())}
	}
	return nil
}

// stagingDir is where a drop's folder for the version it replaces comes and goes.
func (vs versions) stagingDir(t Taken) string {
	return vs.path(layout.ItemDir(t.Item), layout.VersionsDir, "."+string(t.ID))
}

// closeVersion makes versions/N, which closes the item to others.
func (vs versions) closeVersion(t Taken, records map[string][]byte) error {
	n := t.Version - 1
	tmp, to := vs.stagingDir(t), vs.versionDir(t.Item, n)
	if err := vs.clearStaging(t); err != nil {
		return err
	}
	data, err := encode(versionFile{Drop: t.ID, Item: t.Item, Schema: 1, Time: vs.now().UTC().Truncate(time.Microsecond), Version: n})
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(tmp, content.DirPerm); err != nil {
		return err
	}
	for name, record := range records {
		if err := disk.WriteFile(filepath.Join(tmp, name), record, filePerm); err != nil {
			return err
		}
	}
	if err := disk.WriteFile(filepath.Join(tmp, layout.VersionJSON), data, filePerm); err != nil {
		return err
	}
	err = content.RenameNew(tmp, to)
	if errors.Is(err, fs.ErrExist) {
		return &WaitsError{fmt.Sprintf("another drop is becoming version %d of item %s", t.Version, t.Item.Short())}
	}
	if err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(to))
}

// moveIn moves the version that is replaced away, and the drop to its place.
func (vs versions) moveIn(t Taken, parts []string) error {
	home, kept := vs.path(layout.ItemDir(t.Item)), vs.versionDir(t.Item, t.Version-1)
	for _, part := range parts {
		err := content.RenameNew(filepath.Join(home, part), filepath.Join(kept, part))
		if err != nil && !(errors.Is(err, fs.ErrNotExist) && part != layout.SourceDir) {
			return err
		}
	}
	if err := disk.SyncDir(kept); err != nil {
		return err
	}
	if err := content.RenameNew(filepath.Join(vs.intakeOf(t.ID), layout.SourceDir), filepath.Join(home, layout.SourceDir)); err != nil {
		return err
	}
	return errors.Join(disk.SyncDir(home), disk.SyncDir(vs.intakeOf(t.ID)))
}

// Restore takes a drop back into the intake that is not to be a version of its item
// after all, and what it replaced back to its place. Of one that replaced nothing yet
// it only forgets the item. Doing it twice, or after a crash at any point of it or of
// Replace, is fine.
func (vs versions) Restore(t Taken) (Taken, error) {
	if t.Item == "" {
		return t, nil
	}
	begun, err := vs.Begun(t)
	if err == nil && begun {
		err = vs.moveOut(t)
	}
	if err == nil {
		err = vs.clearStaging(t)
	}
	if err != nil {
		return t, fmt.Errorf("take drop %s back from item %s: %w", layout.EncodePath(t.Name), t.Item, err)
	}
	t.Item, t.Version, t.Promoted, t.Path = "", 0, false, vs.sourceOf(t.ID, t.Name)
	return t, nil
}

func (vs versions) moveOut(t Taken) error {
	home, kept, intake := vs.path(layout.ItemDir(t.Item)), vs.versionDir(t.Item, t.Version-1), vs.intakeOf(t.ID)
	// The drop came in after the old source had moved away, so without that there
	// the source in the item's folder is the old one.
	mine := filepath.Join(intake, layout.SourceDir)
	if content.Exists(filepath.Join(kept, layout.SourceDir)) && !content.Exists(mine) && content.Exists(filepath.Join(home, layout.SourceDir)) {
		if err := content.RenameNew(filepath.Join(home, layout.SourceDir), mine); err != nil {
			return err
		}
		if err := errors.Join(disk.SyncDir(intake), disk.SyncDir(home)); err != nil {
			return err
		}
	}
	for _, part := range movedParts() {
		if !content.Exists(filepath.Join(kept, part)) {
			continue
		}
		if err := content.RenameNew(filepath.Join(kept, part), filepath.Join(home, part)); err != nil {
			return err
		}
	}
	if err := errors.Join(disk.SyncDir(home), disk.SyncDir(kept)); err != nil {
		return err
	}
	if err := content.RenameNew(kept, vs.stagingDir(t)); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(kept))
}

// clearStaging removes the copies of records, and the folder, which must hold nothing
// else.
func (vs versions) clearStaging(t Taken) error {
	dir := vs.stagingDir(t)
	if !content.Exists(dir) {
		return nil
	}
	for _, name := range keptRecords() {
		if err := layout.RemoveIfThere(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := removeUnfinished(dir); err != nil {
		return err
	}
	if err := layout.RemoveIfThere(dir); err != nil {
		return err
	}
	if err := os.Remove(filepath.Dir(dir)); err == nil { // the only version it had
		return disk.SyncDir(filepath.Dir(filepath.Dir(dir)))
	}
	return nil
}

// removeUnfinished removes what a kill left of a record being written.
func removeUnfinished(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		for _, name := range keptRecords() {
			if !strings.HasPrefix(e.Name(), "."+name) {
				continue
			}
			if err := layout.RemoveIfThere(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Begun tells whether a drop has closed its item: that it is, or was, on its way to be the version.
func (vs versions) Begun(t Taken) (bool, error) {
	if t.Item == "" {
		return false, nil
	}
	v, err := vs.readVersion(t.Item, t.Version-1)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && v.Drop == t.ID, err
}

func (vs versions) readVersion(item layout.ItemID, n int) (v versionFile, err error) {
	data, err := disk.ReadFile(filepath.Join(vs.versionDir(item, n), layout.VersionJSON))
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("read %s/%s: %w", layout.VersionDir(item, n), layout.VersionJSON, err)
	}
	return v, nil
}

func wrapReplace(t Taken, item layout.ItemID, err error) error {
	var waits *WaitsError
	if err == nil || errors.As(err, &waits) {
		return err
	}
	return fmt.Errorf("make drop %s a version of item %s: %w", layout.EncodePath(t.Name), item, err)
}

// Intend notes in the journal which version of which item a drop is to be, so that
// Bound tells of it while it waits.
func (vs versions) Intend(t Taken, item layout.ItemID, version int) error {
	err := rewriteJournal(vs.intakeOf(t.ID), map[string]any{"item": item, "version": version})
	if err == nil {
		err = disk.SyncDir(vs.intakeOf(t.ID))
	}
	return wrapReplace(t, item, err)
}
