package disk

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// Folders opens files below a root. It keeps the folder of the last one open, so that the files of one folder, in turn,
// cost one open each and not one for each folder on their way. Not for several goroutines.
type Folders struct {
	root *os.Root
	name string
	last *os.File // nil: none is open
}

// Below gives the folders below a root, which stays the caller's to close.
func Below(root *os.Root) *Folders { return &Folders{root: root} }

// OpenFile is os.Root.OpenFile for regular files. A link at the end is not followed; one on the way leads nowhere but below
// the root. A file that may be made has its folder made, too. rel is a slash-separated path below the root.
func (f *Folders) OpenFile(rel string, flag int, perm fs.FileMode) (*os.File, error) {
	dir, name := path.Split(rel)
	if dir = path.Clean(dir); f.last == nil || dir != f.name {
		if err := f.enter(dir, flag&os.O_CREATE != 0); err != nil {
			return nil, err
		}
	}
	if name == "" || name == "." || name == ".." {
		return nil, &fs.PathError{Op: "open", Path: rel, Err: fs.ErrInvalid}
	}
	fd, err := openAt(int(f.last.Fd()), name, flag|unix.O_NOFOLLOW, perm)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), rel), nil
}

// enter opens a folder, and closes the one before.
func (f *Folders) enter(dir string, make bool) error {
	next, err := f.root.Open(dir)
	if make && errors.Is(err, fs.ErrNotExist) {
		if err = f.root.MkdirAll(dir, 0o700); err == nil {
			next, err = f.root.Open(dir)
		}
	}
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return errors.Join(err, next.Close())
	}
	f.name, f.last = dir, next
	return nil
}

// Close closes the folder that is open. Folders may be used again.
func (f *Folders) Close() error {
	last := f.last
	f.last = nil
	if last == nil {
		return nil
	}
	return last.Close()
}
