package disk

import (
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
	for {
		fd, err := unix.Open(name, flag|unix.O_CLOEXEC, uint32(perm.Perm()))
		if err == nil {
			return os.NewFile(uintptr(fd), name), nil
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

// Open is os.Open for regular files and folders.
func Open(name string) (*os.File, error) { return OpenFile(name, os.O_RDONLY, 0) }

// smallFile is more than a lock file, a reference or a manifest of a few files takes.
const smallFile = 4 << 10

// ReadFile is os.ReadFile for regular files, most of them small.
func ReadFile(name string) (data []byte, err error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing can be lost
	for data = make([]byte, 0, smallFile); ; {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, len(data))
		}
	}
}
