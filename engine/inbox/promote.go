package inbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Promote moves a drop from the intake to its item's source folder, bytes
// synced first, and gives it with its new path. The journal stays until Done.
// Promoting twice is fine.
func (b *Box) Promote(ctx context.Context, t Taken) (Taken, error) {
	r := b.readyToPromote(ctx, t)
	if r.Err == nil && !r.Taken.Promoted {
		r.Err = errors.Join(syncDrop(t.Path, t.Files), disk.SyncDir(filepath.Dir(t.Path)))
	}
	if r.Err == nil {
		r.Err = disk.MkdirAll(b.path(layout.ItemDir(t.ID)), dirPerm)
	}
	if r.Err == nil {
		r = b.promote(r.Taken)
	}
	if r.Err == nil {
		r.Err = errors.Join(disk.SyncDir(b.path(layout.ItemDir(t.ID))), disk.SyncDir(b.intakeOf(t.ID)))
	}
	return r.Taken, wrapPromote(t, r.Err)
}

// PromoteAll promotes a group with two syncs of the file system. The answers
// stand in the order of the drops.
func (b *Box) PromoteAll(ctx context.Context, ts []Taken) []Result {
	results := make([]Result, len(ts))
	inParallel(len(ts), func(i int) {
		results[i] = b.readyToPromote(ctx, ts[i])
		if results[i].Err == nil {
			results[i].Err = os.MkdirAll(b.path(layout.ItemDir(ts[i].ID)), dirPerm)
		}
	})
	err := b.syncIntake()
	inParallel(len(ts), func(i int) {
		if results[i].Err = errors.Join(results[i].Err, err); results[i].Err == nil {
			results[i] = b.promote(results[i].Taken)
		}
	})
	err = b.syncIntake()
	for i, t := range ts {
		results[i].Err = wrapPromote(t, errors.Join(results[i].Err, err))
	}
	return results
}

// readyToPromote looks at the drop once more: what was recovered after a crash
// has not been looked at since, and nothing that is not a file may be synced.
func (b *Box) readyToPromote(ctx context.Context, t Taken) Result {
	home := b.itemSource(t.ID)
	if !exists(t.Path) || t.Promoted {
		if at := filepath.Join(home, t.Name); exists(at) {
			t.Path, t.Promoted = at, true
			return Result{Taken: t}
		}
		return Result{Taken: t, Err: ErrGone}
	}
	if exists(home) {
		return Result{Taken: t, Err: fmt.Errorf("%s is there already, with something else in it", home)}
	}
	s, err := b.look(ctx, t.Path)
	if err == nil && s.bad != nil {
		err = s.bad
	}
	return Result{Taken: t, Err: err}
}

func (b *Box) promote(t Taken) Result {
	if t.Promoted {
		return Result{Taken: t}
	}
	home := b.itemSource(t.ID)
	if err := renameNew(filepath.Dir(t.Path), home); err != nil {
		return Result{Taken: t, Err: err}
	}
	t.Path, t.Promoted = filepath.Join(home, t.Name), true
	return Result{Taken: t}
}

// Demote takes a promoted drop back into the intake, durably, as its item is not to
// be after all. A crash before or after it leaves what Pending knows.
func (b *Box) Demote(t Taken) (Taken, error) {
	home, dir := b.itemSource(t.ID), filepath.Join(b.intakeOf(t.ID), layout.SourceDir)
	if t.Item != "" {
		return b.Restore(t)
	}
	if !t.Promoted {
		return t, nil
	}
	err := renameNew(home, dir)
	if err == nil {
		err = errors.Join(disk.SyncDir(filepath.Dir(dir)), disk.SyncDir(filepath.Dir(home)), removeIfThere(filepath.Dir(home)))
	}
	if err != nil {
		return t, fmt.Errorf("take drop %s back from item %s: %w", layout.EncodePath(t.Name), t.ID, err)
	}
	t.Path, t.Promoted = filepath.Join(dir, t.Name), false
	return t, nil
}

func (b *Box) itemSource(id layout.ItemID) string {
	return b.path(layout.ItemDir(id), layout.SourceDir)
}

// Done forgets a promoted drop whose item is committed: the original of a copy
// is removed, then the journal. Before the journal's end a crash repeats it.
// Doing it twice is fine.
func (b *Box) Done(t Taken) error {
	if !t.Promoted || exists(b.sourceOf(t.ID, t.Name)) {
		return fmt.Errorf("finish drop %s: item %s has not got it yet", layout.EncodePath(t.Name), t.ID)
	}
	if err := b.removeAside(t); err != nil {
		return fmt.Errorf("remove the original of drop %s, which is copied: %w", layout.EncodePath(t.Name), err)
	}
	if err := b.keepSidecars(t); err != nil {
		return fmt.Errorf("keep the side-cars of drop %s: %w", layout.EncodePath(t.Name), err)
	}
	if err := removeOwn(t, removeMarker(t.marker, t.markerSeen)); err != nil {
		return fmt.Errorf("remove the marker of drop %s: %w", layout.EncodePath(t.Name), err)
	}
	if err := errors.Join(b.noteHome(t), discardIntake(b.intakeOf(t.ID))); err != nil {
		return fmt.Errorf("finish drop %s: %w", layout.EncodePath(t.Name), err)
	}
	return nil
}

func (b *Box) removeAside(t Taken) error {
	if t.aside == "" || !exists(t.aside) {
		return nil
	}
	if err := disk.RemoveTree(t.aside); err != nil {
		return err
	}
	if len(t.set) > 0 {
		return errors.Join(closeGather(t.aside), disk.SyncDir(filepath.Dir(filepath.Dir(t.aside))))
	}
	return disk.SyncDir(filepath.Dir(t.aside))
}

func wrapPromote(t Taken, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("move drop %s into item %s: %w", layout.EncodePath(t.Name), t.ID, err)
}
