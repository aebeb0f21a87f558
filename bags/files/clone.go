package files

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// cloning is what file systems can, by pairs of devices.
var cloning sync.Map // [2]uint64 -> bool

// clones reports whether copies into a folder can share their bytes with the files of
// another, tried once with one of them, and again where that could not be tried.
func clones(from, into *os.Root, name string) bool {
	var a, b unix.Stat_t
	if unix.Stat(from.Name(), &a) == nil && unix.Stat(into.Name(), &b) == nil {
		if known, tried := cloning.Load([2]uint64{a.Dev, b.Dev}); tried {
			return known.(bool)
		}
	}
	in, err := from.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer in.Close()
	dir, err := into.Open(".")
	if err != nil {
		return false
	}
	defer dir.Close()
	if unix.Fstat(int(in.Fd()), &a) != nil || unix.Fstat(int(dir.Fd()), &b) != nil || a.Size == 0 {
		return false
	}
	devices := [2]uint64{a.Dev, b.Dev}
	if known, tried := cloning.Load(devices); tried {
		return known.(bool)
	}
	out, err := unix.Openat(int(dir.Fd()), ".", unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return false
	}
	err = unix.IoctlFileClone(out, int(in.Fd()))
	cloning.Store(devices, err == nil)
	return unix.Close(out) == nil && err == nil
}
