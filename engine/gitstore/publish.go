package gitstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"bagpipe/layout/disk"
)

// Publication, in this order, each step made possible by the one before:
//
//  1. pack-X.keep, not synced: it tells git repack -ad, which would not find the
//     pack's objects from any branch yet, to leave the pack alone, and tells the
//     next Open that the pack may be half written. It is a second name of one
//     file of ours, synced long ago, so that even a power cut leaves our mark in
//     it and no empty file, which could be a person's.
//  2. pack-X.pack under its final name (without its index no one sees it), and
//     the index under a temporary name, renamed to pack-X.idx when whole.
//  3. pack, index and the branch's new value synced, side by side; then the
//     packs' folder.
//  4. the branch moved by Git's own protocol, its folder synced (reflock.go).
//  5. .keep removed, the publication remembered, what each file replaced noted for
//     Maintain; not synced. The reflog follows later (reflog.go).
//
// A crash up to 3 leaves a pack with its .keep: the next Open removes it when it
// is not whole. A crash up to 4 leaves a whole pack no branch needs, which git gc
// clears. A crash in 5 leaves a .keep, which the next Open removes.

const keepMark = "bagpipe: being published\n"

func (s *Store) packDir() string { return filepath.Join(s.git, "objects", "pack") }
func (s *Store) tempDir() string { return filepath.Join(s.git, "bagpipe") }

// packFiles is a pack being published.
type packFiles struct {
	s       *Store
	base    string // without .pack, .idx, .keep
	pack    disk.File
	index   disk.File
	existed bool // the very same pack was there already
}

// publish makes the group durable and moves the branch.
func (s *Store) publish(b *built, lock *refLock) error {
	pack, index, name := s.own.builder.Finish()
	p := &packFiles{s: s, base: filepath.Join(s.packDir(), "pack-"+name.String())}
	if err := p.write(pack, index); err != nil {
		return errors.Join(fmt.Errorf("write pack: %w", err), p.remove())
	}
	prepareRef := func() error { return errors.Join(lock.write(b.tip), s.closeOldRef()) }
	if err := p.sync(prepareRef); err != nil {
		return errors.Join(fmt.Errorf("sync pack: %w", err), p.remove())
	}
	moved, err := lock.move(b.base)
	if !moved {
		return errors.Join(err, p.remove())
	}
	if err != nil {
		return errors.Join(err, p.release()) // the branch needs the pack
	}
	s.noteMove(b)
	s.noteReplaced(s.own.work.replaced)
	s.rememberPublished(b.tip)
	if err := p.release(); err != nil {
		s.log.Warn("release pack", "pack", p.base, "error", err)
	}
	if err := s.db.Add(p.base, index); err != nil {
		s.log.Warn("read index just written", "pack", p.base, "error", err)
	}
	return nil
}

func (p *packFiles) write(pack, index []byte) error {
	err := p.create(pack, index)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	// The same objects were written before: published, or left by a dead process.
	// Nothing else writes packs of this name while we hold the turn lock.
	if whole, err := p.s.packIsWhole(p.base); err != nil || whole {
		p.existed = whole
		return errors.Join(err, p.reopen())
	}
	if err := p.remove(); err != nil {
		return err
	}
	return p.create(pack, index)
}

func (p *packFiles) create(pack, index []byte) (err error) {
	fsys := p.s.fs
	const flags = os.O_CREATE | os.O_EXCL | os.O_WRONLY
	if _, err := fsys.Lstat(p.base + ".pack"); err == nil {
		return fs.ErrExist
	}
	if err := p.keep(); err != nil {
		return err
	}
	if p.pack, err = fsys.OpenFile(p.base+".pack", flags, 0o444); err != nil {
		return err
	}
	if _, err := p.pack.Write(pack); err != nil {
		return err
	}
	temp := filepath.Join(p.s.tempDir(), filepath.Base(p.base)+".idx")
	if p.index, err = p.openTemp(temp); err != nil {
		return err
	}
	if _, err := p.index.Write(index); err != nil {
		return errors.Join(err, fsys.Remove(temp))
	}
	if err := fsys.Rename(temp, p.base+".idx"); err != nil {
		return errors.Join(err, fsys.Remove(temp))
	}
	return nil
}

func (p *packFiles) openTemp(name string) (disk.File, error) {
	const flags = os.O_CREATE | os.O_EXCL | os.O_WRONLY
	f, err := p.s.fs.OpenFile(name, flags, 0o444)
	switch {
	case errors.Is(err, fs.ErrExist): // left by a failed removal
		err = p.s.fs.Remove(name)
	case errors.Is(err, fs.ErrNotExist):
		err = disk.MkdirAllFS(p.s.fs, filepath.Dir(name), 0o755)
	default:
		return f, err
	}
	if err != nil {
		return nil, err
	}
	return p.s.fs.OpenFile(name, flags, 0o444)
}

func (p *packFiles) reopen() error {
	var errs [2]error
	p.pack, errs[0] = p.s.fs.OpenFile(p.base+".pack", os.O_RDONLY, 0)
	p.index, errs[1] = p.s.fs.OpenFile(p.base+".idx", os.O_RDONLY, 0)
	return errors.Join(errs[:]...)
}

// sync makes pack and index durable, and beside them what and does: one journal
// commit of the file system serves all three.
func (p *packFiles) sync(and func() error) error {
	var errs [3]error
	var wg sync.WaitGroup
	wg.Go(func() { errs[0] = p.index.Sync() })
	wg.Go(func() { errs[1] = and() })
	errs[2] = p.pack.Sync()
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	return p.s.fs.SyncDir(p.s.packDir())
}

// release closes the files and lets git repack have the pack.
func (p *packFiles) release() error {
	err := p.close()
	if removeErr := p.s.fs.Remove(p.base + ".keep"); !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}

func (p *packFiles) close() error {
	var errs []error
	for _, f := range []disk.File{p.pack, p.index} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	p.pack, p.index = nil, nil
	return errors.Join(errs...)
}

// remove takes a pack back that was not published: the index first, so that no
// one sees an index without its pack; .keep last, so that a crash in between is
// recognised.
func (p *packFiles) remove() error {
	if p.existed {
		return p.release()
	}
	errs := []error{p.close(), p.s.db.Forget(p.base)}
	for _, ext := range []string{".idx", ".pack", ".keep"} {
		if err := p.s.fs.Remove(p.base + ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *Store) keepPath() string { return filepath.Join(s.tempDir(), "keep") }

func (p *packFiles) keep() error {
	err := p.s.fs.Link(p.s.keepPath(), p.base+".keep")
	if errors.Is(err, fs.ErrNotExist) { // the mark's file was deleted
		if err := p.s.makeKeep(); err != nil {
			return err
		}
		err = p.s.fs.Link(p.s.keepPath(), p.base+".keep")
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// makeKeep writes the file of our mark. A crash leaves it or not.
func (s *Store) makeKeep() error {
	if text, err := s.fs.ReadFile(s.keepPath()); err == nil && string(text) == keepMark {
		return nil
	}
	if err := disk.MkdirAllFS(s.fs, s.tempDir(), 0o755); err != nil {
		return err
	}
	return disk.WriteFileFS(s.fs, s.keepPath(), "", []byte(keepMark), 0o644)
}
