package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

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

// movedParts are what a version consists of, in the order in which it is moved away.
func movedParts() []string {
	return []string{layout.SidecarsDir, layout.DerivedDir, layout.ContentDir, layout.SourceDir}
}

// keptRecords are copies of committed files beside them.
func keptRecords() []string {
	return []string{layout.ManifestJSON, layout.InventoryJSON, layout.VersionJSON}
}

// Intend notes in the journal which version of which item a drop is to be, so that
// Bound tells of it while it waits.
func (b *Box) Intend(t Taken, item layout.ItemID, version int) error {
	err := rewriteJournal(b.intakeOf(t.ID), map[string]any{"item": item, "version": version})
	if err == nil {
		err = disk.SyncDir(b.intakeOf(t.ID))
	}
	return wrapReplace(t, item, err)
}

// Replace moves a drop into the folder of an item, as its next version, and what was
// there to versions/: bytes synced first. records are the committed files to be kept
// with the version that is replaced. free is asked once the item is closed to others
// and before anything moves; its error ends it. After an error all is as it was,
// unless the drop is given back as promoted: then Restore did not get through.
func (b *Box) Replace(ctx context.Context, t Taken, item layout.ItemID, version int, records map[string][]byte, free func() error) (Taken, error) {
	s, err := b.look(ctx, t.Path)
	if err == nil && s.bad != nil {
		err = s.bad
	}
	if err == nil {
		err = errors.Join(syncDrop(t.Path, t.Files), disk.SyncDir(filepath.Dir(t.Path)))
	}
	if err == nil {
		err = b.previousDone(item, version-1)
	}
	if err == nil {
		err = b.Intend(t, item, version)
	}
	if err != nil {
		return t, wrapReplace(t, item, err)
	}
	now := t
	now.Item, now.Version = item, version
	if err = b.closeVersion(now, records); err == nil {
		err = free()
	}
	if err == nil {
		err = b.moveIn(now)
	}
	if err == nil {
		now.Path, now.Promoted = filepath.Join(b.itemSource(item), t.Name), true
		return now, nil
	}
	back, rerr := b.Restore(now)
	if rerr != nil {
		now.Promoted = true // not to be given back to its owner
		return now, wrapReplace(t, item, errors.Join(err, rerr))
	}
	return back, wrapReplace(t, item, err)
}

// previousDone waits for the end of the admission that made version n.
func (b *Box) previousDone(item layout.ItemID, n int) error {
	drop := item
	if n > 1 {
		v, err := b.readVersion(item, n-1)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		drop = v.Drop
	}
	if drop != "" && exists(filepath.Join(b.intakeOf(drop), journalFile)) {
		return &WaitsError{fmt.Sprintf("version %d of item %s is still being taken in", n, item.Short())}
	}
	return nil
}

func (b *Box) versionDir(item layout.ItemID, n int) string { return b.path(layout.VersionDir(item, n)) }

// stagingDir is where a drop's folder for the version it replaces comes and goes.
func (b *Box) stagingDir(t Taken) string {
	return b.path(layout.ItemDir(t.Item), layout.VersionsDir, "."+string(t.ID))
}

// closeVersion makes versions/N, which closes the item to others.
func (b *Box) closeVersion(t Taken, records map[string][]byte) error {
	n := t.Version - 1
	tmp, to := b.stagingDir(t), b.versionDir(t.Item, n)
	if err := b.clearStaging(t); err != nil {
		return err
	}
	data, err := encode(versionFile{Drop: t.ID, Item: t.Item, Schema: 1, Time: b.opt.Now().UTC().Truncate(time.Microsecond), Version: n})
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(tmp, dirPerm); err != nil {
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
	err = renameNew(tmp, to)
	if errors.Is(err, fs.ErrExist) {
		return &WaitsError{fmt.Sprintf("another drop is becoming version %d of item %s", t.Version, t.Item.Short())}
	}
	if err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(to))
}

// moveIn moves the version that is replaced away, and the drop to its place.
func (b *Box) moveIn(t Taken) error {
	home, kept := b.path(layout.ItemDir(t.Item)), b.versionDir(t.Item, t.Version-1)
	for _, part := range movedParts() {
		err := renameNew(filepath.Join(home, part), filepath.Join(kept, part))
		if err != nil && !(errors.Is(err, fs.ErrNotExist) && part != layout.SourceDir) {
			return err
		}
	}
	if err := disk.SyncDir(kept); err != nil {
		return err
	}
	if err := renameNew(filepath.Join(b.intakeOf(t.ID), layout.SourceDir), filepath.Join(home, layout.SourceDir)); err != nil {
		return err
	}
	return errors.Join(disk.SyncDir(home), disk.SyncDir(b.intakeOf(t.ID)))
}

// Restore takes a drop back into the intake that is not to be a version of its item
// after all, and what it replaced back to its place. Of one that replaced nothing yet
// it only forgets the item. Doing it twice, or after a crash at any point of it or of
// Replace, is fine.
func (b *Box) Restore(t Taken) (Taken, error) {
	if t.Item == "" {
		return t, nil
	}
	begun, err := b.begun(t)
	if err == nil && begun {
		err = b.moveOut(t)
	}
	if err == nil {
		err = b.clearStaging(t)
	}
	if err != nil {
		return t, fmt.Errorf("take drop %s back from item %s: %w", layout.EncodePath(t.Name), t.Item, err)
	}
	t.Item, t.Version, t.Promoted, t.Path = "", 0, false, b.sourceOf(t.ID, t.Name)
	return t, nil
}

func (b *Box) moveOut(t Taken) error {
	home, kept, intake := b.path(layout.ItemDir(t.Item)), b.versionDir(t.Item, t.Version-1), b.intakeOf(t.ID)
	// The drop came in after the old source had moved away, so without that there
	// the source in the item's folder is the old one.
	mine := filepath.Join(intake, layout.SourceDir)
	if exists(filepath.Join(kept, layout.SourceDir)) && !exists(mine) && exists(filepath.Join(home, layout.SourceDir)) {
		if err := renameNew(filepath.Join(home, layout.SourceDir), mine); err != nil {
			return err
		}
		if err := errors.Join(disk.SyncDir(intake), disk.SyncDir(home)); err != nil {
			return err
		}
	}
	for _, part := range movedParts() {
		if !exists(filepath.Join(kept, part)) {
			continue
		}
		if err := renameNew(filepath.Join(kept, part), filepath.Join(home, part)); err != nil {
			return err
		}
	}
	if err := errors.Join(disk.SyncDir(home), disk.SyncDir(kept)); err != nil {
		return err
	}
	if err := renameNew(kept, b.stagingDir(t)); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(kept))
}

// clearStaging removes the copies of records, and the folder, which must hold nothing
// else.
func (b *Box) clearStaging(t Taken) error {
	dir := b.stagingDir(t)
	if !exists(dir) {
		return nil
	}
	for _, name := range keptRecords() {
		if err := removeIfThere(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := removeUnfinished(dir); err != nil {
		return err
	}
	if err := removeIfThere(dir); err != nil {
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
			if err := removeIfThere(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// begun tells whether a drop has closed its item.
func (b *Box) begun(t Taken) (bool, error) {
	if t.Item == "" {
		return false, nil
	}
	v, err := b.readVersion(t.Item, t.Version-1)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && v.Drop == t.ID, err
}

func (b *Box) readVersion(item layout.ItemID, n int) (v versionFile, err error) {
	data, err := os.ReadFile(filepath.Join(b.versionDir(item, n), layout.VersionJSON))
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("read %s/%s: %w", layout.VersionDir(item, n), layout.VersionJSON, err)
	}
	return v, nil
}

// home is the item whose folder the drop goes to.
func (t Taken) home() layout.ItemID {
	if t.Item != "" {
		return t.Item
	}
	return t.ID
}

// Bound lists, of the drops in the intake, those that are to be versions of items, as
// their journals say; it changes nothing.
func (b *Box) Bound() ([]Taken, error) {
	entries, err := os.ReadDir(b.path(layout.IntakeDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []Taken
	for _, e := range entries {
		id, err := layout.ParseItemID(e.Name())
		if err != nil {
			continue
		}
		j, err := readJournal(b.intakeOf(id))
		if err != nil || j.Item == "" {
			continue // told by Pending, or gone
		}
		if t, err := b.taken(id, j); err == nil {
			found = append(found, t)
		}
	}
	return found, nil
}

func wrapReplace(t Taken, item layout.ItemID, err error) error {
	var waits *WaitsError
	if err == nil || errors.As(err, &waits) {
		return err
	}
	return fmt.Errorf("make drop %s a version of item %s: %w", layout.EncodePath(t.Name), item, err)
}
