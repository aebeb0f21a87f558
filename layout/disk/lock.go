package disk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// LockDir waits for the lock of a folder, which the processes of one host share, and
// gives what ends it. A file system without locks is taken for locked.
func LockDir(dir string) (unlock func() error, err error) {
	d, err := Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(d.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil || errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EBADF) {
		return d.Close, nil
	}
	return nil, errors.Join(fmt.Errorf("lock folder %s: %w", dir, err), d.Close())
}
