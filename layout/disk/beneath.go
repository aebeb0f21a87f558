package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The rules are: below a root no link is followed, also where a folder is swapped for one meanwhile. Links on the way to the
// root are the business of whoever named it.

// errLink is a link where a folder or a file was: that one is not there any more.
type errLink struct{}

func (errLink) Error() string        { return "a link is on the way, and is not followed" }
func (errLink) Is(target error) bool { return target == fs.ErrNotExist }

// OpenBeneath opens what lies at rel below root, "." for itself. A link on the way, or at its end, is fs.ErrNotExist; a pipe is
// not waited for.
func OpenBeneath(root, rel string, flag int) (*os.File, error) {
	fd, err := beneath(root, rel, flag)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(root, rel)), nil
}

// OpenFolderBeneath is OpenFolder by OpenBeneath.
func OpenFolderBeneath(root, rel string) (Folder, error) {
	fd, err := beneath(root, rel, unix.O_RDONLY|unix.O_DIRECTORY)
	return Folder{fd}, err
}

func beneath(root, rel string, flag int) (int, error) {
	dir, err := open(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir) // nothing can be lost
	fd, err := Folder{dir}.beneath(rel, flag)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: filepath.Join(root, rel), Err: err}
	}
	return fd, nil
}

// beneath opens a clean path below the folder.
func (d Folder) beneath(rel string, flag int) (fd int, err error) {
	how := unix.OpenHow{Flags: uint64(flag | unix.O_CLOEXEC | unix.O_NONBLOCK), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	if flag&unix.O_PATH != 0 {
		how.Flags &^= unix.O_NONBLOCK
	}
	for {
		fd, err = unix.Openat2(d.fd, rel, &how)
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // before Linux 5.6, or a sandbox of that time
		fd, err = d.stepwise(rel, int(how.Flags))
	}
	if errors.Is(err, unix.ELOOP) {
		err = errLink{}
	}
	return fd, err
}

// stepwise is beneath, folder by folder.
func (d Folder) stepwise(rel string, flag int) (int, error) {
	if !filepath.IsLocal(rel) {
		return -1, unix.EXDEV
	}
	at := d.fd
	for {
		name, rest, more := strings.Cut(rel, "/")
		how := flag | unix.O_NOFOLLOW
		if more {
			how = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
		}
		fd, err := unix.Openat(at, name, how, 0)
		for errors.Is(err, unix.EINTR) {
			fd, err = unix.Openat(at, name, how, 0)
		}
		var st unix.Stat_t
		if errors.Is(err, unix.ENOTDIR) && unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			err = unix.ELOOP
		}
		if at != d.fd {
			unix.Close(at) // nothing can be lost
		}
		if err != nil || !more {
			return fd, err
		}
		at, rel = fd, rest
	}
}

// OpenRawBeneath is OpenRaw of a path below the folder, in which no link is followed.
func (d Folder) OpenRawBeneath(rel string) (f Raw, size int64, err error) {
	fd, err := d.beneath(rel, os.O_RDONLY)
	if err != nil {
		return Raw{}, 0, &fs.PathError{Op: "open", Path: rel, Err: err}
	}
	return rawOf(fd, rel)
}

// Held is what lies at a path below a root, by the folder that it lies in, which is held open: whoever swaps that
// folder, or one above it, for a link does not lead astray who goes by Path.
type Held struct {
	Real string // its path
	fd   int
}

// Hold holds what lies at rel below root, and need not be there; fs.ErrNotExist: its folder is not, or a link is on the way.
func Hold(root, rel string) (Held, error) {
	fd, err := beneath(root, filepath.Dir(rel), unix.O_PATH|unix.O_DIRECTORY)
	return Held{filepath.Join(root, rel), fd}, err
}

// Path is where this process finds it until it is released. What has its name may be a link by now.
func (h Held) Path() string { return h.dir() + filepath.Base(h.Real) }

func (h Held) dir() string { return "/proc/self/fd/" + strconv.Itoa(h.fd) + "/" }

// Named has an error name the real path.
func (h Held) Named(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		if rel, is := strings.CutPrefix(at.Path, h.dir()); is {
			at.Path = filepath.Join(filepath.Dir(h.Real), rel)
		}
	}
	return err
}

// Release ends it.
func (h Held) Release() { unix.Close(h.fd) } // nothing can be lost
