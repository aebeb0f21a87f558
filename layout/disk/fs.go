package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// FS is what a durable store asks of a file system. It is narrow so that a test
// can number every change (see faultfs), stop at any of them, and take back
// what was not synced. Names are the operating system's.
type FS interface {
	// OpenFile is os.OpenFile.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// WriteNew makes a file of these bytes, fs.ErrExist where there is one; it syncs nothing. After another error
	// the file may be there, with some of them.
	WriteNew(name string, data []byte, perm fs.FileMode) error
	// Rename replaces newName when it exists, at once; it syncs nothing.
	Rename(oldName, newName string) error
	// Exchange gives each of two files the other's name, at once; it syncs nothing.
	// fs.ErrNotExist when one is not there, errors.ErrUnsupported where it cannot be
	// done. Unlike Rename over a file, it has no file system write bytes out.
	Exchange(name, other string) error
	// Amend gives a small file new bytes in its place; see OS.Amend.
	Amend(name string, edit func(old []byte) []byte) (done bool, err error)
	// Link gives the file oldName a second name; fs.ErrExist when newName is taken.
	Link(oldName, newName string) error
	// Remove removes a file or an empty folder.
	Remove(name string) error
	// Mkdir makes one folder; it syncs nothing.
	Mkdir(name string, perm fs.FileMode) error
	// SyncDir makes the names in a folder durable.
	SyncDir(name string) error
	// SyncFS makes everything written to the file system that holds name durable.
	SyncFS(name string) error

	ReadFile(name string) ([]byte, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Lstat(name string) (fs.FileInfo, error)
}

// File is an open file of an FS.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	// Sync makes the file's bytes durable, not its name.
	Sync() error
	Truncate(size int64) error
}

// OS is the operating system's file system.
type OS struct{}

func (OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// WriteNew makes no os.File, which takes a third of the time for a small file.
func (OS) WriteNew(name string, data []byte, perm fs.FileMode) (err error) {
	fd, err := open(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return &fs.PathError{Op: "write", Path: name, Err: err}
		}
		data = data[max(n, 0):]
	}
	return nil
}

// Rename first asks for a name that nothing has, as most are: os.Rename looks at what may have it.
func (OS) Rename(oldName, newName string) error {
	if unix.Renameat2(unix.AT_FDCWD, oldName, unix.AT_FDCWD, newName, unix.RENAME_NOREPLACE) == nil {
		return nil
	}
	return os.Rename(oldName, newName)
}

func (OS) Exchange(name, other string) error {
	err := unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) {
		err = errors.ErrUnsupported
	}
	if err != nil {
		return &os.LinkError{Op: "exchange", Old: name, New: other, Err: err}
	}
	return nil
}

func (OS) Link(oldName, newName string) error         { return os.Link(oldName, newName) }
func (OS) Remove(name string) error                   { return os.Remove(name) }
func (OS) Mkdir(name string, perm fs.FileMode) error  { return os.Mkdir(name, perm) }
func (OS) SyncDir(name string) error                  { return SyncDir(name) }
func (OS) SyncFS(name string) error                   { return SyncFS(name) }
func (OS) ReadFile(name string) ([]byte, error)       { return ReadFile(name) }
func (OS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (OS) Lstat(name string) (fs.FileInfo, error)     { return os.Lstat(name) }

// WriteFileFS is WriteFile on any FS. The temporary file is NAME.tmp beside
// path, or in tmpDir when one is given (on the same file system); a crash may
// leave it, and the next call replaces it.
func WriteFileFS(fsys FS, path, tmpDir string, data []byte, perm fs.FileMode) error {
	tmp := path + ".tmp"
	if tmpDir != "" {
		tmp = filepath.Join(tmpDir, filepath.Base(path)+".tmp")
	}
	if err := writeSynced(fsys, tmp, data, perm); err != nil {
		return errors.Join(err, ignoreMissing(fsys.Remove(tmp)))
	}
	if err := fsys.Rename(tmp, path); err != nil {
		return errors.Join(err, ignoreMissing(fsys.Remove(tmp)))
	}
	return fsys.SyncDir(filepath.Dir(path))
}

func writeSynced(fsys FS, name string, data []byte, perm fs.FileMode) (err error) {
	f, err := fsys.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

// MkdirAllFS is MkdirAll on any FS.
func MkdirAllFS(fsys FS, path string, perm fs.FileMode) error {
	if info, err := fsys.Lstat(path); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := MkdirAllFS(fsys, parent, perm); err != nil {
			return err
		}
	}
	if err := fsys.Mkdir(path, perm); err != nil {
		if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
			return nil // a link to a folder, or made by another meanwhile
		}
		return err
	}
	return fsys.SyncDir(parent)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
