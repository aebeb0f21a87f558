package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// The rules are: the files of a set are renamed, one by one, into .bagpipe-sets/ID beside
// them, and that folder then into the intake, by one rename, as any drop. The journal
// names them before the first rename, and scans pass over them for as long as the folder
// is there: so no process takes one of them for a drop of its own. The rename of the first
// makes the one winner. A crash between the renames leaves some files there and some where
// they were; Pending then puts all back, the first one last, and the set settles anew.

// gatherOf is where the files of a set are gathered.
func gatherOf(t Taken) string { return filepath.Join(filepath.Dir(t.Origin), setsName, string(t.ID)) }

// openGather makes it, and its parent, which another process may remove meanwhile.
func openGather(path string) error {
	for n := 0; ; n++ {
		if err := os.Mkdir(filepath.Dir(path), content.DirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		err := os.Mkdir(path, content.DirPerm)
		if n < 100 && errors.Is(err, fs.ErrNotExist) && content.Exists(filepath.Dir(filepath.Dir(path))) {
			continue
		}
		return err
	}
}

// closeGather removes the folder, which must be empty, and its parent if that is.
func closeGather(path string) error {
	if err := layout.RemoveIfThere(path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	err := os.Remove(filepath.Dir(path))
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

// seizeSet gathers the files of a set and renames the folder that holds them.
func (b *taker) seizeSet(ctx context.Context, d Drop, got Result, sync bool) Result {
	t := got.Taken
	gather := gatherOf(t)
	err := openGather(gather)
	if errors.Is(err, fs.ErrNotExist) { // the folder of drops
		err = ErrGone
	}
	if err == nil {
		err = b.gather(d, gather)
	}
	if errors.Is(err, ErrGone) { // nothing was moved
		return b.giveUp(got, errors.Join(err, closeGather(gather)))
	}
	if err == nil {
		err = b.verifySet(ctx, d, gather)
	}
	if err == nil {
		b.at("gathered")
		if err = error(unix.EXDEV); !d.foreign {
			err = content.RenameNew(gather, t.Path)
		}
		if content.IsEXDEV(err) {
			return b.copySet(ctx, t)
		}
	}
	if err == nil {
		b.at("moved")
		err = closeGather(gather)
	}
	if err == nil && sync {
		err = errors.Join(disk.SyncDir(filepath.Dir(t.Path)), disk.SyncDir(filepath.Dir(d.Path)))
	}
	if err != nil {
		return Result{Err: errors.Join(err, b.Undo(t))}
	}
	return got
}

// gather moves the files; ErrGone says that another was first.
func (b *taker) gather(d Drop, to string) error {
	home := filepath.Dir(d.Path)
	for i, m := range d.set {
		b.at("gather")
		err := content.RenameNew(filepath.Join(home, m.name), filepath.Join(to, m.name))
		switch {
		case i == 0 && errors.Is(err, fs.ErrNotExist):
			return ErrGone
		case errors.Is(err, fs.ErrNotExist):
			return ErrChanged
		case err != nil:
			return err
		}
	}
	return nil
}

// verifySet is verify for each file of a set.
func (b *taker) verifySet(ctx context.Context, d Drop, gather string) error {
	for _, m := range d.set {
		if err := b.verify(ctx, Drop{seen: seen{sig: m.sig}}, filepath.Join(gather, m.name)); err != nil {
			return err
		}
	}
	return nil
}

// copySet goes on on another file system: what is gathered is the original that stays
// until Done.
func (b *taker) copySet(ctx context.Context, t Taken) Result {
	t.aside = gatherOf(t)
	err := rewriteJournal(b.intakeOf(t.ID), map[string]any{"mode": modeCopy, "aside": b.shorten(t.aside)})
	if err == nil {
		err = disk.SyncDir(filepath.Dir(filepath.Dir(t.aside)))
	}
	if err == nil {
		err = b.copyIn(ctx, t.aside, t)
	}
	if err != nil {
		return Result{Err: errors.Join(err, b.Undo(t))}
	}
	return Result{Taken: t}
}

// spread puts the files of a set back, wherever they have come to, durably. Doing it
// again, after a crash at any point of it, is fine.
func (b *taker) spread(t Taken) error {
	gather, home := gatherOf(t), filepath.Dir(t.Origin)
	if t.aside == "" && content.Exists(t.Path) {
		if err := disk.MkdirAll(filepath.Dir(gather), content.DirPerm); err != nil { // its owner may have removed it
			return err
		}
		if err := layout.RemoveIfThere(gather); err != nil { // where a take begins
			return err
		}
		if err := content.RenameNew(t.Path, gather); err != nil {
			return err
		}
		b.at("unmoved")
	}
	for _, name := range slices.Backward(t.set) {
		if !content.Exists(filepath.Join(gather, name)) {
			continue
		}
		b.at("spread")
		if err := content.PutBack(filepath.Join(gather, name), home, name); err != nil {
			return err
		}
	}
	return closeGather(gather)
}

// lackingOfSet names the files of a set that are not where it was taken to.
func lackingOfSet(t Taken) (lacks []string) {
	for _, name := range t.set {
		if !content.Exists(filepath.Join(t.Path, name)) {
			lacks = append(lacks, layout.EncodePath(name))
		}
	}
	return lacks
}
