package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"
)

// Named is one name in a folder. Type is its kind as the folder has it, unix.DT_REG and so
// on; unix.DT_UNKNOWN where the file system does not say.
type Named struct {
	Name string
	Type byte
}

// direntBuffers hold what one getdents gives; a folder costs two calls.
var direntBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// NamesIn lists an open folder, without an os.File for it, which costs small folders more
// than listing them.
func NamesIn(fd int) (names []Named, err error) {
	buffer := direntBuffers.Get().(*[32 << 10]byte)
	defer direntBuffers.Put(buffer)
	for ended := false; !ended && err == nil; {
		names, ended, err = listOn(fd, names, buffer[:])
	}
	return names, err
}

// firstNames is what one call gives of an open folder: of a small one all, though it does not say so.
func firstNames(fd int) (names []Named, err error) {
	buffer := direntBuffers.Get().(*[32 << 10]byte)
	defer direntBuffers.Put(buffer)
	names, _, err = listOn(fd, nil, buffer[:])
	return names, err
}

// listOn adds what one call gives; ended says that there is no more.
func listOn(fd int, names []Named, buffer []byte) (_ []Named, ended bool, err error) {
	for {
		n, err := unix.Getdents(fd, buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return names, true, err
		}
		return appendNames(names, buffer[:n]), false, nil
	}
}

// Names lists the folder dir, in no order.
func Names(dir string) ([]Named, error) {
	fd, err := open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) // read only: nothing can be lost
	names, err := NamesIn(fd)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: err}
	}
	return names, nil
}

// appendNames reads struct linux_dirent64: inode, offset, length, type, name.
func appendNames(names []Named, records []byte) []Named {
	const length, kind, name = 16, 18, 19
	for len(records) > name {
		own := records[:binary.NativeEndian.Uint16(records[length:])]
		records = records[len(own):]
		text, _, _ := bytes.Cut(own[name:], []byte{0})
		if binary.NativeEndian.Uint64(own) == 0 || string(text) == "." || string(text) == ".." {
			continue
		}
		names = append(names, Named{string(text), own[kind]})
	}
	return names
}
