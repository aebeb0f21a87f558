package disk

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// OpenFile is os.OpenFile for regular files and folders. It does not offer the descriptor
// to the runtime's poller, which refuses such files after five calls of the system: for
// small files that is more than reading them.
func OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	fd, err := open(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func open(name string, flag int, perm fs.FileMode) (int, error) {
	return openAt(unix.AT_FDCWD, name, flag, perm)
}

func openAt(dir int, name string, flag int, perm fs.FileMode) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flag|unix.O_CLOEXEC, uint32(perm.Perm()))
		if err == nil {
			return fd, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return -1, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

// Open is os.Open for regular files and folders.
func Open(name string) (*os.File, error) { return OpenFile(name, os.O_RDONLY, 0) }

// smallFile is more than a lock file, a reference or a manifest of a few files takes.
const smallFile = 4 << 10

// ReadFile is os.ReadFile for regular files, most of them small.
func ReadFile(name string) ([]byte, error) {
	fd, err := open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) // read only: nothing can be lost
	data, ended, err := readSmall(fd)
	for err == nil && !ended {
		if len(data) == cap(data) {
			data = slices.Grow(data, len(data))
		}
		var n int
		if n, err = readSome(fd, data[len(data):cap(data)]); err == nil {
			data, ended = data[:len(data)+n], n == 0
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, nil
}

// readSmall reads the beginning of a file into no more memory than it takes; ended says that
// there is nothing behind it.
func readSmall(fd int) (data []byte, ended bool, err error) {
	var small [smallFile]byte
	length := 0
	for length < len(small) && !ended && err == nil {
		var n int
		n, err = readSome(fd, small[length:])
		length, ended = length+n, n == 0
	}
	return append(make([]byte, 0, length), small[:length]...), ended, err
}

func readSome(fd int, into []byte) (int, error) {
	for {
		n, err := unix.Read(fd, into)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}

// Holds reports whether a regular file holds these bytes and no others.
func (d Folder) Holds(name string, data []byte) (bool, error) {
	fd, err := openAt(d.fd, name, os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd) // read only: nothing can be lost
	got := make([]byte, len(data)+1)
	length := 0
	for length < len(data) {
		n, err := readSome(fd, got[length:])
		if err != nil {
			return false, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		if n == 0 {
			return false, nil
		}
		length += n
	}
	return bytes.Equal(got[:length], data), nil
}

// Overwrite makes data the content of a file, which may be there. It is written over in its
// place, and nothing is synced.
func Overwrite(name string, data []byte, perm fs.FileMode) (err error) {
	return Folder{unix.AT_FDCWD}.Overwrite(name, data, perm)
}

// Overwrite is Overwrite of a name in the folder.
func (d Folder) Overwrite(name string, data []byte, perm fs.FileMode) (err error) {
	fd, err := openAt(d.fd, name, os.O_WRONLY|os.O_CREATE, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	for done := 0; done < len(data); {
		n, err := unix.Pwrite(fd, data[done:], int64(done))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return &fs.PathError{Op: "write", Path: name, Err: err}
		}
		done += max(n, 0)
	}
	if err := unix.Ftruncate(fd, int64(len(data))); err != nil {
		return &fs.PathError{Op: "truncate", Path: name, Err: err}
	}
	return nil
}

// Move is os.Rename without a look at what is there, which rename(2) replaces.
func Move(from, to string) error {
	if err := unix.Rename(from, to); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// Move gives a file of the folder another name in it; what has that name is replaced, or, where
// new is said, fs.ErrExist. Not every file system can do the latter.
func (d Folder) Move(from, to string, new bool) (err error) {
	if new {
		err = unix.Renameat2(d.fd, from, d.fd, to, unix.RENAME_NOREPLACE)
	} else {
		err = unix.Renameat(d.fd, from, d.fd, to)
	}
	if err != nil {
		err = &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return err
}

// Raw is a regular file open for reading, without what an os.File costs beside.
type Raw struct{ fd int }

// OpenRaw opens name. What is no regular file is fs.ErrInvalid, and no link is followed.
func OpenRaw(name string) (f Raw, size int64, err error) { return Folder{unix.AT_FDCWD}.OpenRaw(name) }

// Folder is a folder open for what lies in it: names are looked up from there.
type Folder struct{ fd int }

// OpenFolder opens a folder.
func OpenFolder(name string) (Folder, error) {
	fd, err := open(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
	return Folder{fd}, err
}

// Close closes the folder.
func (d Folder) Close() error { return unix.Close(d.fd) }

// OpenRaw is OpenRaw of a name in the folder.
func (d Folder) OpenRaw(name string) (f Raw, size int64, err error) {
	fd, err := openAt(d.fd, name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return Raw{}, 0, err
	}
	return rawOf(fd, name)
}

// rawOf gives an open file, or closes it.
func rawOf(fd int, name string) (f Raw, size int64, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd) // read only: nothing can be lost
		return Raw{}, 0, &fs.PathError{Op: "open", Path: name, Err: cmp.Or(err, fs.ErrInvalid)}
	}
	return Raw{fd}, st.Size, nil
}

func (f Raw) Read(into []byte) (int, error) {
	n, err := readSome(f.fd, into)
	if err == nil && n == 0 && len(into) > 0 {
		err = io.EOF
	}
	return n, err
}

// Close closes the file.
func (f Raw) Close() error { return unix.Close(f.fd) }
