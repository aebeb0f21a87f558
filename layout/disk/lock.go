package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// LockDir waits for the lock of a folder, which the processes of one host share, and
// gives what ends it. A file system without locks is taken for locked.
func LockDir(dir string) (unlock func() error, err error) {
	fd, err := open(dir, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	err = flock(fd)
	if err == nil || errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EBADF) {
		return func() error { return unix.Close(fd) }, nil
	}
	return nil, errors.Join(fmt.Errorf("lock folder %s: %w", dir, err), unix.Close(fd))
}

// LockFile waits for the lock of a file, which is made if need be, and gives what ends it.
func LockFile(name string, perm fs.FileMode) (unlock func() error, err error) {
	fd, err := open(name, os.O_RDWR|os.O_CREATE, perm) // NFS locks what is open for writing
	if err != nil {
		return nil, err
	}
	if err := flock(fd); err != nil {
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: name, Err: err}, unix.Close(fd))
	}
	return func() error { return unix.Close(fd) }, nil
}

// TryLockFile is LockFile without waiting: unlock is nil where another has the lock. The file need not be
// one that may be written to.
func TryLockFile(name string, perm fs.FileMode) (unlock func() error, err error) {
	fd, err := open(name, os.O_RDONLY|os.O_CREATE, perm)
	if err != nil {
		return nil, err
	}
	if err = tryFlock(fd); errors.Is(err, unix.EIO) || errors.Is(err, unix.EBADF) { // NFS
		unix.Close(fd) // nothing was written
		if fd, err = open(name, os.O_RDWR|os.O_CREATE, perm); err != nil {
			return nil, err
		}
		err = tryFlock(fd)
	}
	if err == nil {
		return func() error { return unix.Close(fd) }, nil
	}
	unix.Close(fd) // nothing was written
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
}

// Lock is a file whose lock is taken again and again.
type Lock struct{ fd int }

// OpenLock opens the file, which is made if need be.
func OpenLock(name string, perm fs.FileMode) (Lock, error) {
	fd, err := open(name, os.O_RDWR|os.O_CREATE, perm)
	return Lock{fd}, err
}

// Held waits for the lock, and has it while act runs. One call at a time: two would share it.
func (l Lock) Held(act func() error) (err error) {
	if err := flock(l.fd); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Flock(l.fd, unix.LOCK_UN)) }()
	return act()
}

// Close closes the file.
func (l Lock) Close() error { return unix.Close(l.fd) }

func flock(fd int) error { return flockAs(fd, unix.LOCK_EX) }

func tryFlock(fd int) error { return flockAs(fd, unix.LOCK_EX|unix.LOCK_NB) }

func flockAs(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
