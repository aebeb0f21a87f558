package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// Request asks for one drop to be taken.
type Request struct {
	Drop   Drop
	Ticket Ticket
}

// Result answers one of a group.
type Result struct {
	Taken Taken
	Err   error
}

// Take moves a settled drop into the intake, durably. Of several takers, in any
// number of processes, one succeeds and the others get ErrGone. After ErrChanged
// the drop is in the inbox again. After any error nothing is left in the intake.
func (b *Box) Take(ctx context.Context, d Drop, t Ticket) (Taken, error) {
	got := b.takeOne(ctx, Request{d, t})
	return got.Taken, wrapDrop("take", d, got.Err)
}

// TakeAll takes a group with one sync of the file system in place of several for each
// drop: that of the journals. What a crash leaves of a rename after it, Pending finds
// in either place. PromoteAll's first sync makes the renames durable. The answers stand
// in the order of the requests.
func (b *Box) TakeAll(ctx context.Context, reqs []Request) []Result {
	results := make([]Result, len(reqs))
	journals := make([]journal, len(reqs))
	ids, err := b.drawIDs(len(reqs))
	for i, r := range reqs { // in order, so that times are
		results[i], journals[i] = b.draft(r, ids[i], err)
	}
	inParallel(len(reqs), func(i int) { results[i] = b.prepare(results[i], journals[i], false) })
	if err := b.syncIntake(); err != nil {
		for i := range results {
			results[i] = b.giveUp(results[i], err)
		}
	}
	inParallel(len(reqs), func(i int) { results[i] = b.seize(ctx, reqs[i].Drop, results[i], false) })
	for i, r := range reqs {
		results[i].Err = wrapDrop("take", r.Drop, results[i].Err)
	}
	return results
}

func (b *Box) syncIntake() error {
	intake := b.path(layout.IntakeDir)
	if err := disk.MkdirAll(intake, dirPerm); err != nil {
		return err
	}
	return disk.SyncFS(intake)
}

// takeOne takes one drop, with its own syncs.
func (b *Box) takeOne(ctx context.Context, r Request) Result {
	ids, err := b.drawIDs(1)
	got, j := b.draft(r, ids[0], err)
	got = b.prepare(got, j, true)
	return b.seize(ctx, r.Drop, got, true)
}

// drawIDs draws identifiers in their order: items made at one time are ordered by them,
// as those are that are taken together.
func (b *Box) drawIDs(n int) (ids []layout.ItemID, err error) {
	ids = make([]layout.ItemID, n)
	for i := range ids {
		if ids[i], err = layout.NewItemID(b.opt.Random); err != nil {
			return ids, err
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// draft writes the journal, in memory; err is that of its identifier.
func (b *Box) draft(r Request, id layout.ItemID, err error) (Result, journal) {
	if err != nil {
		return Result{Err: err}, journal{}
	}
	j := b.journalOf(r.Drop, r.Ticket)
	t, err := b.taken(id, j)
	return Result{Taken: t, Err: err}, j
}

// prepare makes the intake folder that the drop is to be moved into.
func (b *Box) prepare(got Result, j journal, sync bool) Result {
	if got.Err != nil {
		return got
	}
	if err := b.open(got.Taken.ID, j, sync); err != nil {
		return Result{Err: err}
	}
	return got
}

// seize renames the drop into its intake folder and looks at what it got.
func (b *Box) seize(ctx context.Context, d Drop, got Result, sync bool) Result {
	if got.Err != nil {
		return got
	}
	if d.IsSet() {
		return b.seizeSet(ctx, d, got, sync)
	}
	t := got.Taken
	if d.Stays != "" {
		return b.seizeOriginal(ctx, d, t)
	}
	if err := b.noteTaking(d, t); err != nil {
		return b.giveUp(got, err)
	}
	err := error(unix.EXDEV) // of another account: copied, as from another file system
	if !d.foreign {
		err = moveDrop(d.Path, t.Path)
	}
	switch {
	case isEXDEV(err):
		return b.seizeAcross(ctx, d, t)
	case errors.Is(err, fs.ErrNotExist):
		return b.giveUp(got, ErrGone)
	case err != nil:
		return b.giveUp(got, err)
	}
	if err := b.verify(ctx, d, t.Path); err != nil {
		return Result{Err: errors.Join(err, b.Undo(t))}
	}
	if !sync {
		return got
	}
	if err := errors.Join(disk.SyncDir(filepath.Dir(t.Path)), disk.SyncDir(filepath.Dir(d.Path))); err != nil {
		return Result{Err: errors.Join(err, b.Undo(t))}
	}
	return got
}

// verify checks that what was moved is what Scan saw. Its owner may have gone on
// writing, or put something else in its place, in between.
func (b *Box) verify(ctx context.Context, d Drop, path string) error {
	s, err := b.survey(ctx, path, b.settlingOf(""), true)
	if err != nil {
		return err
	}
	if s.held != "" {
		return heldError(filepath.Join(filepath.Base(path), s.held))
	}
	if d.sig != (signature{}) && s.sig != d.sig {
		return ErrChanged
	}
	if s.bad != nil {
		return s.bad
	}
	return nil
}

// giveUp removes the intake folder of a drop that was not moved.
func (b *Box) giveUp(got Result, cause error) Result {
	if got.Err != nil {
		return got
	}
	return Result{Err: errors.Join(cause, discardIntake(b.intakeOf(got.Taken.ID)))}
}

// Undo gives an uncommitted drop back: to where it was dropped, under a free
// name should its own be taken by now. Of a copy the original goes back and the
// copy is removed.
func (b *Box) Undo(t Taken) error {
	if err := b.undo(t); err != nil {
		return fmt.Errorf("put back drop %s: %w", layout.EncodePath(t.Name), err)
	}
	return nil
}

func (b *Box) undo(t Taken) error {
	dir := b.intakeOf(t.ID)
	j, err := readJournal(dir)
	if err != nil {
		return err
	}
	if begun, err := b.begun(t); begun || err != nil {
		return errors.Join(errors.New("it is a version of its item, or half way to it"), err)
	}
	if t.Promoted || exists(filepath.Join(b.itemSource(t.ID), t.Name)) {
		return errors.New("it is in its item's folder already")
	}
	switch {
	case j.Mode == modeCopy:
		err = b.dropCopy(t)
	case len(t.set) > 0:
		err = b.spread(t)
	case exists(t.Path):
		err = putBack(t.Path, filepath.Dir(t.Origin), t.Name)
	}
	if err != nil {
		return err
	}
	return discardIntake(dir)
}

func wrapDrop(verb string, d Drop, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s drop %s/%s: %w", verb, d.Collection, layout.EncodePath(d.Name), err)
}
