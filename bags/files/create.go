package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// CopyBuffer is the size of one read and of one write.
const CopyBuffer = 256 << 10

// The permissions of what is made; files keep their execute bits.
const (
	FilePerm   fs.FileMode = 0o644
	FolderPerm fs.FileMode = 0o755
)

// A Creator makes files below its root. It finds a folder through os.Root once and keeps
// it open for the files that follow, so that a small file costs three calls and not
// three for each part of its path. Used by one goroutine.
type Creator struct {
	Root *os.Root
	at   entered
}

// A NewFile is a file being written, without the runtime's poller, which costs small
// files more than the writing.
type NewFile struct{ fd int }

func (p *Creator) enter(folder string) (int, error) { return p.at.enter(p.Root, folder) }

// Create makes a file that must not be there. The last part of its path is no link, or
// Create fails.
func (p *Creator) Create(name string, perm fs.FileMode) (NewFile, error) {
	dir, err := p.enter(path.Dir(name))
	if err != nil {
		return NewFile{}, err
	}
	fd, err := retry(func() (int, error) {
		return unix.Openat(dir, path.Base(name), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(perm.Perm()))
	})
	if err != nil {
		return NewFile{}, &fs.PathError{Op: "create", Path: name, Err: err}
	}
	return NewFile{fd}, nil
}

// SetTime sets a made file's time of modification.
func (p *Creator) SetTime(name string, at time.Time) error {
	dir, err := p.enter(path.Dir(name))
	if err != nil {
		return err
	}
	t, err := unix.TimeToTimespec(at)
	if err != nil {
		return nil // beyond what the system keeps: no time is better than a wrong one
	}
	return unix.UtimesNanoAt(dir, path.Base(name), []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW)
}

// Close lets go of the folder.
func (p *Creator) Close() { p.at.leave() }

// Write writes all of b.
func (f NewFile) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := retry(func() (int, error) { return unix.Write(f.fd, b[done:]) })
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// Hole leaves a hole of n bytes.
func (f NewFile) Hole(n int64) error {
	_, err := unix.Seek(f.fd, n, unix.SEEK_CUR)
	return err
}

// Truncate ends the file at n bytes, where its last part is a hole.
func (f NewFile) Truncate(n int64) error { return unix.Ftruncate(f.fd, n) }

// Close closes the file.
func (f NewFile) Close() error {
	err := unix.Close(f.fd)
	if errors.Is(err, unix.EINTR) {
		return nil // Linux has closed it
	}
	return err
}
