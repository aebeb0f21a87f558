package inbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Promote moves a drop from the intake to its item's source folder, bytes
// synced first, and gives it with its new path. The journal stays until Done.
// Promoting twice is fine.
func (b *taker) Promote(ctx context.Context, t Taken) (Taken, error) {
	r := b.readyToPromote(ctx, t)
	if r.Err == nil && !r.Taken.Promoted {
		r.Err = errors.Join(syncDrop(t.Path, t.Files), disk.SyncDir(filepath.Dir(t.Path)))
	}
	if r.Err == nil {
		r.Err = disk.MkdirAll(b.path(layout.ItemDir(t.ID)), content.DirPerm)
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
func (b *taker) PromoteAll(ctx context.Context, ts []Taken) []Result {
	results := make([]Result, len(ts))
	content.InParallel(len(ts), func(i int) {
		results[i] = b.readyToPromote(ctx, ts[i])
		if results[i].Err == nil {
			results[i].Err = os.MkdirAll(b.path(layout.ItemDir(ts[i].ID)), content.DirPerm)
		}
	})
	err := b.syncIntake()
	content.InParallel(len(ts), func(i int) {
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
func (b *taker) readyToPromote(ctx context.Context, t Taken) Result {
	home := b.itemSource(t.ID)
	if !content.Exists(t.Path) || t.Promoted {
		if at := filepath.Join(home, t.Name); content.Exists(at) {
			t.Path, t.Promoted = at, true
			return Result{Taken: t}
		}
		return Result{Taken: t, Err: ErrGone}
	}
	if content.Exists(home) {
		return Result{Taken: t, Err: fmt.Errorf("%s is there already, with something else in it", home)}
	}
	s, err := b.look(ctx, t.Path)
	if err == nil && s.Bad != nil {
		err = s.Bad
	}
	return Result{Taken: t, Err: err}
}

func (b *taker) promote(t Taken) Result {
	if t.Promoted {
		return Result{Taken: t}
	}
	home := b.itemSource(t.ID)
	if err := content.RenameNew(filepath.Dir(t.Path), home); err != nil {
		return Result{Taken: t, Err: err}
	}
	t.Path, t.Promoted = filepath.Join(home, t.Name), true
	return Result{Taken: t}
}

// Demote takes a promoted drop back into the intake, durably, as its item is not to
// be after all. A crash before or after it leaves what Pending knows.
func (b *taker) Demote(t Taken) (Taken, error) {
	home, dir := b.itemSource(t.ID), filepath.Join(b.intakeOf(t.ID), layout.SourceDir)
	if t.Item != "" {
		return b.Restore(t)
	}
	if !t.Promoted {
		return t, nil
	}
	err := content.RenameNew(home, dir)
	if err == nil {
		err = errors.Join(disk.SyncDir(filepath.Dir(dir)), disk.SyncDir(filepath.Dir(home)), layout.RemoveIfThere(filepath.Dir(home)))
	}
	if err != nil {
		return t, fmt.Errorf("take drop %s back from item %s: %w", layout.EncodePath(t.Name), t.ID, err)
	}
	t.Path, t.Promoted = filepath.Join(dir, t.Name), false
	return t, nil
}

// Done forgets a promoted drop whose item is committed: the original of a copy
// is removed, then the journal. Before the journal's end a crash repeats it.
// Doing it twice is fine.
func (b *taker) Done(t Taken) error {
	if !t.Promoted || content.Exists(b.sourceOf(t.ID, t.Name)) {
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

func (b *taker) removeAside(t Taken) error {
	if t.aside == "" || !content.Exists(t.aside) {
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

// Reject moves a drop from the inbox to rejected/, its reason first, and tells
// where it is. Nothing in it is opened.
func (b *taker) Reject(ctx context.Context, d Drop, rule, reason string) (string, error) {
	where, err := b.reject(ctx, d, nil, rule, reason)
	if err == nil {
		err = removeMarker(d.Marker, d.markerSeen)
	}
	return where, wrapDrop("reject", d, err)
}

// RejectTaken does the same with a drop in the intake, and forgets it. Of a copy
// the original goes last: a crash before that puts it back, to be taken and
// rejected a second time.
func (b *taker) RejectTaken(ctx context.Context, t Taken, rule, reason string) (string, error) {
	d := Drop{Collection: t.Collection, Batch: layout.Name(t.Ticket.Batch), Name: t.Name, Path: t.Path}
	if t.Promoted {
		return "", wrapDrop("reject", d, errors.New("it is in its item's folder already"))
	}
	where, err := b.reject(ctx, d, t.Original, rule, reason)
	if err == nil {
		err = errors.Join(b.removeAside(t), removeOwn(t, removeMarker(t.marker, t.markerSeen)))
	}
	if err == nil {
		err = discardIntake(b.intakeOf(t.ID))
	}
	return where, wrapDrop("reject", d, err)
}
