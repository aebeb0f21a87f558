package disk

import (
	"errors"
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
	for {
		fd, err := unix.Open(name, flag|unix.O_CLOEXEC, uint32(perm.Perm()))
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
func ReadFile(name string) (data []byte, err error) {
	fd, err := open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) // read only: nothing can be lost
	for data = make([]byte, 0, smallFile); ; {
		n, err := unix.Read(fd, data[len(data):cap(data)])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		case n == 0:
			return data, nil
		}
		data = data[:len(data)+n]
		if len(data) == cap(data) {
			data = slices.Grow(data, len(data))
		}
	}
}
