package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// seizeAcross takes a drop from another file system. The rename in place makes
// the one winner, and whatever happens later, the original stays until Done.
func (b *taker) seizeAcross(ctx context.Context, d Drop, t Taken) Result {
	dir := b.intakeOf(t.ID)
	home := filepath.Dir(d.Path)
	t.aside = filepath.Join(home, asidePrefix+string(t.ID))
	err := rewriteJournal(dir, map[string]any{"mode": modeCopy, "aside": b.shorten(t.aside)})
	if err != nil {
		return Result{Err: errors.Join(err, discardIntake(dir))}
	}
	// A crash from here on finds the journal, and puts back what it names.
	if err := content.MoveDrop(d.Path, t.aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrGone
		}
		return Result{Err: errors.Join(err, discardIntake(dir))}
	}
	err = disk.SyncDir(home)
	if err == nil {
		err = b.verify(ctx, d, t.aside)
	}
	if err == nil {
		err = b.copyIn(ctx, t.aside, t)
	}
	if err != nil {
		return Result{Err: errors.Join(err, b.Undo(t))}
	}
	return Result{Taken: t}
}

// copyIn copies a drop into its intake folder: all bytes are on disk, read back
// and compared before the copy gets its final name.
func (b *taker) copyIn(ctx context.Context, from string, t Taken) error {
	dir := b.intakeOf(t.ID)
	copying := filepath.Join(dir, copyingDir)
	before, err := b.look(ctx, from)
	if err != nil {
		return err
	}
	if before.Bad != nil {
		return before.Bad
	}
	if err := os.Mkdir(copying, content.DirPerm); err != nil {
		return err
	}
	to := filepath.Join(copying, t.Name)
	read, err := content.CopyTree(ctx, from, to)
	if err != nil {
		return err
	}
	if err := syncDrop(to, read.Files); err != nil {
		return err
	}
	written, err := Digest(ctx, to)
	if err != nil {
		return err
	}
	if read != written {
		return fmt.Errorf("the copy's digest is %s, that of the original %s: the disk or the memory is at fault", written.Digest, read.Digest)
	}
	after, err := b.look(ctx, from)
	if err != nil {
		return err
	}
	if after.Sig != before.Sig {
		return ErrChanged
	}
	if err := content.MoveDrop(to, t.Path); err != nil {
		return err
	}
	return errors.Join(disk.SyncDir(filepath.Dir(t.Path)), os.Remove(copying))
}

// manyFiles is from where on one sync of the file system is cheaper than one for
// each file.
const manyFiles = 64

func syncDrop(path string, files int) error {
	if files < manyFiles {
		return disk.SyncTree(path)
	}
	return disk.SyncFS(path)
}

// dropCopy removes a copy, whole or half, and puts the original back. Without an
// original a whole copy stays.
func (b *taker) dropCopy(t Taken) error {
	switch {
	case len(t.set) > 0 && content.Exists(t.aside):
		// The copy goes first: with some of its files put back it would be taken for whole.
		return errors.Join(disk.RemoveTree(t.Path), b.spread(t))
	case t.aside != "" && content.Exists(t.aside):
		if err := content.PutBack(t.aside, filepath.Dir(t.aside), t.Name); err != nil {
			return err
		}
	case content.Exists(t.Path) && (t.aside != "" || !content.Exists(t.Origin)):
		return errors.New("its original is gone, so the copy is kept")
	}
	return disk.RemoveTree(t.Path)
}

// Accept takes a file or folder from anywhere: a copy, or with Move the thing
// itself. It does not wait for it to settle. A *BadError says what in it cannot
// be taken.
func (b *taker) Accept(ctx context.Context, path string, ticket Ticket) (Taken, error) {
	got := b.AcceptAll(ctx, []string{path}, ticket)[0]
	return got.Taken, got.Err
}

// AcceptAll is Accept of several, side by side. The answers stand in their order, and
// so do the identifiers.
func (b *taker) AcceptAll(ctx context.Context, paths []string, ticket Ticket) []Result {
	results := make([]Result, len(paths))
	ids, err := b.drawIDs(len(paths))
	const waiting = 16 // for the disk, most of the time
	content.SideBySide(len(paths), waiting, func(i int) {
		got := Result{Err: err}
		if err == nil {
			got = b.accept(ctx, paths[i], ids[i], ticket)
		}
		if got.Err != nil {
			got.Err = fmt.Errorf("add %s: %w", layout.EncodePath(paths[i]), got.Err)
		}
		results[i] = got
	})
	return results
}

func (b *taker) accept(ctx context.Context, path string, id layout.ItemID, ticket Ticket) Result {
	d, err := b.acceptable(ctx, path, ticket)
	if err != nil {
		return Result{Err: err}
	}
	got, j := b.draft(Request{d, ticket}, id, nil)
	if ticket.Move {
		return b.seize(ctx, d, b.prepare(got, j, true), true)
	}
	j.Mode = modeCopy
	if got = b.prepare(got, j, true); got.Err != nil {
		return got
	}
	if err := b.copyIn(ctx, d.Path, got.Taken); err != nil {
		return Result{Err: errors.Join(err, b.Undo(got.Taken))}
	}
	return got
}

// acceptable makes a drop of a path given by a person.
func (b *taker) acceptable(ctx context.Context, path string, ticket Ticket) (Drop, error) {
	if _, err := layout.ParseName(string(ticket.Collection)); err != nil {
		return Drop{}, fmt.Errorf("collection: %w", err)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return Drop{}, err
	}
	if err := b.outside(path, ticket); err != nil {
		return Drop{}, err
	}
	s, err := b.look(ctx, path)
	switch {
	case errors.Is(err, ErrGone):
		return Drop{}, errors.New("there is no such file or folder")
	case err != nil:
		return Drop{}, err
	case s.Bad != nil:
		return Drop{}, s.Bad
	case s.Empty():
		return Drop{}, content.Bad(content.RuleEmpty, ".", "is empty")
	}
	d := Drop{Collection: ticket.Collection, Name: filepath.Base(path), Path: path, Kind: s.Kind, Files: s.Files,
		Bytes: s.Bytes, Since: s.Newest, seen: seen{sig: s.Sig, foreign: s.Access.Foreign}}
	if !ticket.Move {
		return d, nil
	}
	var t terms
	t.fixed, t.sticky = mayMove(filepath.Dir(path))
	if _, why := t.stays(d, s); why != "" {
		return Drop{}, fmt.Errorf("it cannot be moved: %s; without --move it is copied", why)
	}
	return d, nil
}

// outside refuses what belongs to the workspace, and what holds the workspace. It allows
// drops in the inbox, and the source of an item, to be copied as the item's next version.
func (b *taker) outside(path string, ticket Ticket) error {
	root, err := filepath.EvalSymlinks(b.root)
	if err != nil {
		return err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no such file or folder")
	}
	if err != nil {
		return err
	}
	real := filepath.Join(parent, filepath.Base(path))
	if _, err := os.Lstat(real); errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no such file or folder")
	}
	switch {
	case within(root, real):
		return errors.New("it holds the workspace itself")
	case within(real, filepath.Join(root, layout.InboxDir)) && filepath.Dir(parent) == filepath.Join(root, layout.InboxDir):
		return nil
	case ticket.VersionOf != "" && !ticket.Move && parent == filepath.Join(root, layout.ItemDir(ticket.VersionOf), layout.SourceDir):
		return nil
	case ticket.Move && (within(real, filepath.Join(root, layout.FetchedDir)) || within(real, filepath.Join(root, layout.SubmittedDir))):
		return nil
	case within(real, root):
		return errors.New("it belongs to the workspace; what lies in inbox/COLLECTION/ is taken by itself")
	}
	return nil
}

// within tells whether path is dir or lies below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !(len(rel) > 2 && rel[:3] == "../")
}
