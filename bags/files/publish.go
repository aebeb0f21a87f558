package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/layout/disk"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// A published thing appears under its name whole and durable, or not at all. The
// rules are:
//
//   - it is made in a hidden folder beside its place, on the same file system;
//   - it is synced, renamed without replacing anything, and the folder synced: a
//     crash before the rename leaves nothing under the name, one after it all;
//   - what a crash left of the hidden folder is removed by the next that publishes
//     under the same name: its lock is free.

// A Scratch is a hidden folder beside the place of the thing made in it.
type Scratch struct {
	dest string
	dir  string
	lock *flock.Flock
}

const (
	scratchMark = ".bagpipe-"
	scratchLock = "lock"
	scratchMade = "made"
)

// NewScratch makes the hidden folder of dest. It refuses a place that is taken.
func NewScratch(dest string) (*Scratch, error) {
	dest = filepath.Clean(dest)
	if _, err := os.Lstat(dest); err == nil {
		return nil, fmt.Errorf("%s is there already; nothing is written over it", dest)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	parent, name := filepath.Split(dest)
	parent = cmp.Or(parent, ".")
	prefix := "." + name[:min(len(name), 200)] + scratchMark
	if err := sweep(parent, prefix); err != nil {
		return nil, err
	}
	for {
		dir, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, err
		}
		s := &Scratch{dest: dest, dir: dir, lock: flock.New(filepath.Join(dir, scratchLock))}
		locked, err := s.lock.TryLock()
		if locked {
			return s, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, disk.RemoveTree(dir))
		}
		// Somebody who swept took it for a dead one's before it was locked.
	}
}

// sweep removes what a crash left under this prefix.
func sweep(parent, prefix string) error {
	names, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, d := range names {
		if !d.IsDir() || !strings.HasPrefix(d.Name(), prefix) {
			continue
		}
		dir := filepath.Join(parent, d.Name())
		if _, err := os.Lstat(filepath.Join(dir, scratchLock)); err != nil {
			// Of one who was killed before it had a lock, or who is just making it and
			// then makes another; or not ours. Only an empty folder goes.
			_ = os.Remove(dir)
			continue
		}
		lock := flock.New(filepath.Join(dir, scratchLock))
		if locked, err := lock.TryLock(); err != nil || !locked {
			continue
		}
		if err := errors.Join(removeScratch(dir), lock.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Made gives the path to make the thing at.
func (s *Scratch) Made() string { return filepath.Join(s.dir, scratchMade) }

// Publish puts the thing in its place, durably. sync makes its bytes durable; nil leaves
// that to the caller.
func (s *Scratch) Publish(sync func(path string) error) error {
	if sync == nil {
		return renameNew(s.Made(), s.dest)
	}
	if err := sync(s.Made()); err != nil {
		return err
	}
	if err := renameNew(s.Made(), s.dest); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(s.dest))
}

// Close removes the folder.
func (s *Scratch) Close() error { return errors.Join(removeScratch(s.dir), s.lock.Close()) }

// removeScratch keeps the lock until the rest is gone: a crash in between leaves
// what the next sweep still knows as ours.
func removeScratch(dir string) error {
	return errors.Join(disk.RemoveTree(filepath.Join(dir, scratchMade)), disk.RemoveTree(dir))
}

// renameNew renames, and fails where something stands at the new name.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch {
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%s appeared meanwhile; nothing is written over it", to)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		// A file system that cannot; what appears in this instant is written over
		// only if it is an empty folder or, for a file, a file.
		if _, lerr := os.Lstat(to); lerr == nil {
			return fmt.Errorf("%s appeared meanwhile; nothing is written over it", to)
		}
		return os.Rename(from, to)
	case err != nil:
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
