package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"bagpipe/engine/inbox/internal/content"
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
func (b *taker) Take(ctx context.Context, d Drop, t Ticket) (Taken, error) {
	got := b.takeOne(ctx, Request{d, t})
	return got.Taken, wrapDrop("take", d, got.Err)
}

// TakeAll takes a group with one sync of the file system in place of several for each
// drop: that of the journals. What a crash leaves of a rename after it, Pending finds
// in either place. PromoteAll's first sync makes the renames durable. The answers stand
// in the order of the requests.
func (b *taker) TakeAll(ctx context.Context, reqs []Request) []Result {
	results := make([]Result, len(reqs))
	journals := make([]journal, len(reqs))
	ids, err := b.drawIDs(len(reqs))
	for i, r := range reqs { // in order, so that times are
		results[i], journals[i] = b.draft(r, ids[i], err)
	}
	content.InParallel(len(reqs), func(i int) { results[i] = b.prepare(results[i], journals[i], false) })
	if err := b.syncIntake(); err != nil {
		for i := range results {
			results[i] = b.giveUp(results[i], err)
		}
	}
	content.InParallel(len(reqs), func(i int) { results[i] = b.seize(ctx, reqs[i].Drop, results[i], false) })
	for i, r := range reqs {
		results[i].Err = wrapDrop("take", r.Drop, results[i].Err)
	}
	return results
}

// takeOne takes one drop, with its own syncs.
func (b *taker) takeOne(ctx context.Context, r Request) Result {
	ids, err := b.drawIDs(1)
	got, j := b.draft(r, ids[0], err)
	got = b.prepare(got, j, true)
	return b.seize(ctx, r.Drop, got, true)
}

// drawIDs draws identifiers in their order: items made at one time are ordered by them,
// as those are that are taken together.
func (b *taker) drawIDs(n int) (ids []layout.ItemID, err error) {
	ids = make([]layout.ItemID, n)
	for i := range ids {
		if ids[i], err = layout.NewItemID(b.random); err != nil {
			return ids, err
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// draft writes the journal, in memory; err is that of its identifier.
func (b *taker) draft(r Request, id layout.ItemID, err error) (Result, journal) {
	if err != nil {
		return Result{Err: err}, journal{}
	}
	j := b.journalOf(r.Drop, r.Ticket)
	t, err := b.taken(id, j)
	return Result{Taken: t, Err: err}, j
}

// prepare makes the intake folder that the drop is to be moved into.
func (b *taker) prepare(got Result, j journal, sync bool) Result {
	if got.Err != nil {
		return got
	}
	if err := b.open(got.Taken.ID, j, sync); err != nil {
		return Result{Err: err}
	}
	return got
}

// seize renames the drop into its intake folder and looks at what it got.
func (b *taker) seize(ctx context.Context, d Drop, got Result, sync bool) Result {
	if got.Err != nil {
		return got
	}
	t := got.Taken
	if d.Stays != "" {
		return b.seizeOriginal(ctx, d, t)
	}
	if err := b.noteTaking(d, t); err != nil {
		return b.giveUp(got, err)
	}
	if d.IsSet() {
		return b.seizeSet(ctx, d, got, sync)
	}
	err := error(unix.EXDEV) // of another account: copied, as from another file system
	if !d.foreign {
		err = content.MoveDrop(d.Path, t.Path)
	}
	switch {
	case content.IsEXDEV(err):
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
func (b *taker) verify(ctx context.Context, d Drop, path string) error {
	s, err := b.survey(ctx, path, b.settlingOf(""), true)
	if err != nil {
		return err
	}
	if s.Held != "" {
		return heldError(filepath.Join(filepath.Base(path), s.Held))
	}
	if d.sig != (content.Signature{}) && s.Sig != d.sig {
		return ErrChanged
	}
	if s.Bad != nil {
		return s.Bad
	}
	return nil
}

// giveUp removes the intake folder of a drop that was not moved.
func (b *taker) giveUp(got Result, cause error) Result {
	if got.Err != nil {
		return got
	}
	return Result{Err: errors.Join(cause, discardIntake(b.intakeOf(got.Taken.ID)))}
}

// Undo gives an uncommitted drop back: to where it was dropped, under a free
// name should its own be taken by now. Of a copy the original goes back and the
// copy is removed.
func (b *taker) Undo(t Taken) error {
	if err := b.undo(t); err != nil {
		return fmt.Errorf("put back drop %s: %w", layout.EncodePath(t.Name), err)
	}
	return nil
}

func (b *taker) undo(t Taken) error {
	dir := b.intakeOf(t.ID)
	j, err := readJournal(dir)
	if err != nil {
		return err
	}
	if begun, err := b.Begun(t); begun || err != nil {
		return errors.Join(errors.New("it is a version of its item, or half way to it"), err)
	}
	if t.Promoted || content.Exists(filepath.Join(b.itemSource(t.ID), t.Name)) {
		return errors.New("it is in its item's folder already")
	}
	switch {
	case j.Mode == modeCopy:
		err = b.dropCopy(t)
	case len(t.set) > 0:
		err = b.spread(t)
	case content.Exists(t.Path):
		err = content.PutBack(t.Path, filepath.Dir(t.Origin), t.Name)
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

// Next is the version of an item that a drop becomes. First tells that the item was
// registered without content.
type Next struct {
	Item    layout.ItemID
	Version int
	First   bool
}

// Replace moves a drop into the folder of an item, as its next version, and what was
// there to versions/: bytes synced first. records are the committed files to be kept
// with the version that is replaced. free is asked once the item is closed to others
// and before anything moves; its error ends it. After an error all is as it was,
// unless the drop is given back as promoted: then Restore did not get through.
func (b *taker) Replace(ctx context.Context, t Taken, to Next, records map[string][]byte, free func() error) (Taken, error) {
	item, version := to.Item, to.Version
	s, err := b.look(ctx, t.Path)
	if err == nil && s.Bad != nil {
		err = s.Bad
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
		parts := movedParts()
		if to.First { // what was made before there was content stays
			parts = []string{layout.SidecarsDir, layout.SourceDir}
		}
		err = b.moveIn(now, parts)
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

func heldText(name string) string {
	return fmt.Sprintf("a program has %s open for writing", layout.EncodePath(name))
}

// heldError gives a drop back that is still being written to.
func heldError(rel string) error {
	return fmt.Errorf("%w: %s", ErrChanged, heldText(rel))
}
