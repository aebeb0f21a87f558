package disk

import (
	"errors"
	"fmt"
	"io"
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
	parent, err := open(filepath.Dir(path), os.O_RDONLY, 0)
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	defer unix.Close(parent) // read only: nothing can be lost
	return removeFolder(parent, filepath.Base(path), path)
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
	defer unix.Close(fd) // read only: nothing can be lost
	some, err := firstNames(fd)
	for again := false; ; again = true {
		if errors.Is(err, fs.ErrNotExist) { // another removed the folder since it was opened
			return nil
		}
		if err != nil {
			return fmt.Errorf("remove: %w", &fs.PathError{Op: "readdir", Path: path, Err: err})
		}
		for _, e := range some {
			err := removeEntry(fd, e, path)
			if errors.Is(err, fs.ErrPermission) && unix.Fchmod(fd, 0o700) == nil {
				err = removeEntry(fd, e, path)
			}
			if err != nil {
				return err
			}
		}
		err = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
		if again || !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			return failed(err)
		}
		// The first names were not all: the rest is listed from the start, as to list on while names go may leave some out.
		if _, err = unix.Seek(fd, 0, io.SeekStart); err == nil {
			some, err = NamesIn(fd)
		}
	}
}

func removeEntry(dir int, e Named, path string) error {
	path = filepath.Join(path, e.Name)
	if e.Type == unix.DT_DIR {
		return removeFolder(dir, e.Name, path)
	}
	err := unix.Unlinkat(dir, e.Name, 0)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return nil
	case e.Type == unix.DT_UNKNOWN && (errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM)):
		return removeFolder(dir, e.Name, path)
	}
	return &fs.PathError{Op: "remove", Path: path, Err: err}
}
