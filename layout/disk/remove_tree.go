package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// RemoveTree removes a tree, also one with folders that forbid it; what is not there is
// removed. It goes through the tree once, from open folder to open folder, and follows no
// link: whoever swaps a folder for a link meanwhile loses the link.
func RemoveTree(path string) error {
	err := unix.Unlink(path)
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return nil
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM): // POSIX answers EPERM for a folder
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	parent, err := Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	defer parent.Close() // read only: nothing can be lost
	return removeFolder(int(parent.Fd()), filepath.Base(path), path)
}

// removeFolder removes the folder name of parent, and what is in it. path is for errors.
func removeFolder(parent int, name, path string) error {
	failed := func(err error) error {
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(parent, name, flags, 0)
	if errors.Is(err, fs.ErrPermission) && unix.Fchmodat(parent, name, 0o700, 0) == nil {
		fd, err = unix.Openat(parent, name, flags, 0)
	}
	if err != nil {
		return failed(err)
	}
	dir := os.NewFile(uintptr(fd), path)
	defer dir.Close() // read only: nothing can be lost
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	for _, e := range entries {
		err := removeEntry(fd, e, path)
		if errors.Is(err, fs.ErrPermission) && unix.Fchmod(fd, 0o700) == nil {
			err = removeEntry(fd, e, path)
		}
		if err != nil {
			return err
		}
	}
	return failed(unix.Unlinkat(parent, name, unix.AT_REMOVEDIR))
}

func removeEntry(dir int, e fs.DirEntry, path string) error {
	path = filepath.Join(path, e.Name())
	if e.IsDir() {
		return removeFolder(dir, e.Name(), path)
	}
	if err := unix.Unlinkat(dir, e.Name(), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}
