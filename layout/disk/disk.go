package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// WriteFile replaces path with data, durably: a temporary file beside it is
// written and synced, renamed over path, and the directory synced. A crash
// leaves the old file or the new one, and perhaps a temporary dotfile.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	if err := renameio.WriteFile(path, data, perm, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		if errors.Is(err, fs.ErrNotExist) { // the error has the temporary file's name, which nobody gave
			err = &fs.PathError{Op: "open", Path: filepath.Dir(path), Err: unix.ENOENT}
		}
		return fmt.Errorf("write %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// Rename renames oldPath to newPath on one file system and syncs both parent
// directories. The bytes themselves are synced by the caller (SyncTree, SyncFS).
func Rename(oldPath, newPath string) error {
	if err := os.Rename(oldPath, newPath); err != nil {
		return err
	}
	if err := SyncDir(filepath.Dir(newPath)); err != nil {
		return err
	}
	if filepath.Dir(oldPath) == filepath.Dir(newPath) {
		return nil
	}
	return SyncDir(filepath.Dir(oldPath))
}

// MkdirAll makes path and its missing parents and syncs the directory each new
// one was made in, from the top down.
func MkdirAll(path string, perm fs.FileMode) error {
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("make folder %s: a file is in the way", path)
		}
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := MkdirAll(parent, perm); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(parent)
}

// FoldersTo lists dir, root, which it is below, and the folders between: their names must
// be durable for what is in dir to be found, also those that another writer made.
func FoldersTo(root, dir string) []string {
	root, dir = filepath.Clean(root), filepath.Clean(dir)
	all := []string{dir}
	for dir != root && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		all = append(all, dir)
	}
	return all
}

// SyncDir makes the names in dir durable.
func SyncDir(dir string) (err error) {
	fd, err := open(dir, os.O_RDONLY, 0)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	for err = unix.Fsync(fd); errors.Is(err, unix.EINTR); {
		err = unix.Fsync(fd)
	}
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	return nil
}

// SyncFS makes everything written so far to the file system that holds path
// durable. For many files it is far cheaper than a sync each.
func SyncFS(path string) (err error) {
	d, err := Open(path)
	if err != nil {
		return fmt.Errorf("sync file system: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fmt.Errorf("sync the file system of %s: %w", path, err)
	}
	return nil
}

// SyncTree syncs every regular file and folder below path, and path itself.
// Links and special files are passed over: their names are in their folder.
func SyncTree(path string) error {
	return filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			return nil
		}
		return SyncDir(p) // opening and syncing is the same for a file
	})
}

// SameFileSystem reports whether a rename from a to b can work without a copy.
func SameFileSystem(a, b string) (bool, error) {
	var sa, sb unix.Stat_t
	if err := unix.Lstat(a, &sa); err != nil {
		return false, fmt.Errorf("stat %s: %w", a, err)
	}
	if err := unix.Lstat(b, &sb); err != nil {
		return false, fmt.Errorf("stat %s: %w", b, err)
	}
	return sa.Dev == sb.Dev, nil
}

// Free gives the bytes an ordinary user can still write to the file system that
// holds path.
func Free(path string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", path, err)
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// FreeInodes is how many files and folders can still be made in the file system of
// path; bounded is false where it makes room for them as they come.
func FreeInodes(path string) (n uint64, bounded bool, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, false, fmt.Errorf("free inodes of %s: %w", path, err)
	}
	return s.Ffree, s.Files > 0, nil
}
