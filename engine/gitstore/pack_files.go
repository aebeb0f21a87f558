package gitstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout/disk"
)

const keepMark = "bagpipe: being published\n"

// packFiles is a pack being published.
type packFiles struct {
	repo    *repo.Repo
	base    string // without .pack, .idx, .keep
	pack    disk.File
	index   disk.File
	existed bool // the very same pack was there already
}

// createNew are the flags of a file that must not exist yet.
const createNew = os.O_CREATE | os.O_EXCL | os.O_WRONLY

func (p *packFiles) write(pack, index []byte) error {
	err := p.create(pack, index)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	// The same objects were written before: published, or left by a dead process.
	// Nothing else writes packs of this name while we hold the turn lock.
	if whole, err := packIsWhole(p.repo, p.base); err != nil || whole {
		p.existed = whole
		return errors.Join(err, p.reopen())
	}
	if err := p.remove(); err != nil {
		return err
	}
	return p.create(pack, index)
}

func (p *packFiles) create(pack, index []byte) (err error) {
	if p.repo.Exists(p.base + ".pack") {
		return fs.ErrExist
	}
	if err := p.keep(); err != nil {
		return err
	}
	if p.pack, err = p.repo.FS.OpenFile(p.base+".pack", createNew, 0o444); err != nil {
		return err
	}
	if _, err := p.pack.Write(pack); err != nil {
		return err
	}
	temp := p.repo.Temp(filepath.Base(p.base) + ".idx")
	p.index, err = p.repo.OpenFile(temp, createNew, 0o444)
	if errors.Is(err, fs.ErrExist) { // left by a failed removal
		if err = p.repo.FS.Remove(temp); err == nil {
			p.index, err = p.repo.FS.OpenFile(temp, createNew, 0o444)
		}
	}
	if err != nil {
		return err
	}
	if _, err := p.index.Write(index); err != nil {
		return errors.Join(err, p.repo.FS.Remove(temp))
	}
	if err := p.repo.FS.Rename(temp, p.base+".idx"); err != nil {
		return errors.Join(err, p.repo.FS.Remove(temp))
	}
	return nil
}

func (p *packFiles) reopen() error {
	var errs [2]error
	p.pack, errs[0] = p.repo.FS.OpenFile(p.base+".pack", os.O_RDONLY, 0)
	p.index, errs[1] = p.repo.FS.OpenFile(p.base+".idx", os.O_RDONLY, 0)
	return errors.Join(errs[:]...)
}

// sync makes pack and index durable, and runs and beside them: one journal commit of the
// file system serves all three.
func (p *packFiles) sync(and func() error) error {
	var g errgroup.Group
	g.Go(p.index.Sync)
	g.Go(and)
	err := p.pack.Sync()
	if err = errors.Join(err, g.Wait()); err != nil {
		return err
	}
	return p.repo.FS.SyncDir(p.repo.PackDir())
}

// release closes the files and lets git repack have the pack.
func (p *packFiles) release() error {
	return errors.Join(p.close(), p.repo.Remove(p.base+".keep"))
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

// remove takes a pack back that was not published: the index first, so that no reader sees
// an index without its pack; .keep last, so that a crash in between is recognised.
func (p *packFiles) remove() error {
	if p.existed {
		return p.release()
	}
	errs := []error{p.close(), p.repo.DB.Forget(p.base)}
	for _, ext := range []string{".idx", ".pack", ".keep"} {
		errs = append(errs, p.repo.Remove(p.base+ext))
	}
	return errors.Join(errs...)
}

// keepFile is the file of our mark, within the repository.
const keepFile = "keep"

func (p *packFiles) keep() error {
	err := p.repo.FS.Link(p.repo.Temp(keepFile), p.base+".keep")
	if errors.Is(err, fs.ErrNotExist) { // the mark's file was deleted
		if err := makeKeep(p.repo); err != nil {
			return err
		}
		err = p.repo.FS.Link(p.repo.Temp(keepFile), p.base+".keep")
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// makeKeep writes the file of our mark. A crash leaves it or not.
func makeKeep(r *repo.Repo) error {
	name := r.Temp(keepFile)
	if text, err := r.FS.ReadFile(name); err == nil && string(text) == keepMark {
		return nil
	}
	if err := r.MkdirAll(filepath.Dir(name)); err != nil {
		return err
	}
	return disk.WriteFileFS(r.FS, name, "", []byte(keepMark), 0o644)
}
