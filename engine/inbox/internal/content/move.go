package content

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// RenameNew renames without ever replacing what is at newPath (fs.ErrExist).
// Where the file system cannot promise that, it looks first.
func RenameNew(oldPath, newPath string) error {
	err := unix.Renameat2(unix.AT_FDCWD, oldPath, unix.AT_FDCWD, newPath, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		if _, lerr := os.Lstat(newPath); lerr == nil {
			err = unix.EEXIST
		} else {
			return os.Rename(oldPath, newPath)
		}
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: oldPath, New: newPath, Err: err}
	}
	return nil
}

// MoveDrop is renameNew for what people dropped: a folder without write
// permission (copied from a CD, say) cannot change its parent, so it gets the
// permission for the length of the rename.
func MoveDrop(oldPath, newPath string) error {
	err := RenameNew(oldPath, newPath)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	info, serr := os.Lstat(oldPath)
	if serr != nil || !info.IsDir() || info.Mode().Perm()&0o200 != 0 {
		return err
	}
	if os.Chmod(oldPath, info.Mode().Perm()|0o200) != nil {
		return err
	}
	if err = RenameNew(oldPath, newPath); err != nil {
		return errors.Join(err, os.Chmod(oldPath, info.Mode().Perm()))
	}
	return os.Chmod(newPath, info.Mode().Perm())
}

// PutBack moves a drop to dir under its name, or name.2, name.3 … when that is
// taken by now, durably.
func PutBack(from, dir, name string) error {
	if err := disk.MkdirAll(dir, DirPerm); err != nil { // its owner may have removed it
		return err
	}
	for n := 1; ; n++ {
		err := MoveDrop(from, filepath.Join(dir, Numbered(name, n)))
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		return disk.SyncDir(dir)
	}
}

// DirPerm is that of folders in the workspace; the workspace itself is closed to others.
const DirPerm = 0o755

// MaxNameLen is what file systems allow a name, in bytes.
const MaxNameLen = 255

func Numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	suffix := "." + strconv.Itoa(n)
	if len(name)+len(suffix) > MaxNameLen {
		name = name[:MaxNameLen-len(suffix)]
	}
	return name + suffix
}

func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func IsEXDEV(err error) bool { return errors.Is(err, unix.EXDEV) }
