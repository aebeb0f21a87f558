package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Writers says whether somebody holds a file open for writing.
type Writers int

// The answers about a file's writers.
const (
	NoWriters     Writers = iota
	HasWriters            // a process of this machine has the file open for writing, or mapped
	UnseenWriters         // the kernel does not answer: the file is another account's, or its file system grants no leases
)

// WritersOf asks the kernel for a read lease on a regular file, which it refuses while
// the file is open for writing under any of its names, and gives the lease back at once.
// Who opens the file for writing within these microseconds waits for them. The lease of
// a file of another account needs CAP_LEASE. A writer on another machine is not seen.
func WritersOf(name string) Writers {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EWOULDBLOCK) { // somebody has a lease to write it
		return HasWriters
	}
	if err != nil {
		return UnseenWriters
	}
	defer unix.Close(fd) // gives the lease back
	switch _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); {
	case err == nil:
		return NoWriters
	case errors.Is(err, unix.EAGAIN):
		return HasWriters
	}
	return UnseenWriters
}
