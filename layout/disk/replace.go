package disk

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Replace puts from in the place of to, durably, and leaves what stood there, if
// anything did, at from. Both are on one file system. A crash leaves the old or
// the new at to, never neither.
func Replace(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	switch {
	case errors.Is(err, unix.ENOENT):
		return Rename(from, to)
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
		return replaceSlowly(from, to)
	case err != nil:
		return &os.LinkError{Op: "exchange", Old: from, New: to, Err: err}
	}
	return errors.Join(SyncDir(filepath.Dir(to)), SyncDir(filepath.Dir(from)))
}

// replaceSlowly is for file systems without an exchange (some network file
// systems). A crash between its renames leaves the old at to+".replaced"; the
// step that wanted the new one runs again and the old one is put aside for good.
func replaceSlowly(from, to string) error {
	aside := to + ".replaced"
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Rename(to, aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := Rename(from, to); err != nil {
		return errors.Join(err, os.Rename(aside, to))
	}
	if err := os.Rename(aside, from); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
