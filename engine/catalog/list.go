package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

// lister reads folders below one root. Links are not followed, and mounts, bind mounts among
// them, are not entered: what lies there is another root's. It belongs to one goroutine.
type lister struct {
	place
	fd  int // of the root
	dev uint64
	buf []byte
}

func newLister(at place) (*lister, error) {
	fd, err := unix.Open(at.root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	var fsys unix.Statfs_t
	if err := unix.Fstatfs(fd, &fsys); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	if nameOf(&fsys) != at.device { // mounted, or no more, since it was asked for
		return nil, errors.Join(errMounted, unix.Close(fd))
	}
	return &lister{place: at, fd: fd, dev: uint64(st.Dev), buf: make([]byte, 64<<10)}, nil
}

func (l *lister) close() error { return unix.Close(l.fd) }

// errMounted is a folder on which something else is mounted.
var errMounted = errors.New("another file system is mounted there")

// open opens a folder below the root, no link and no mount on the way.
func (l *lister) open(path string) (fd int, err error) {
	if len(l.root)+1+len(path) >= unix.PathMax { // whoever reads what is in it goes by the whole path
		return -1, unix.ENAMETOOLONG
	}
	if path == "" {
		path = "."
	}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NONBLOCK
	how := unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV}
	for {
		fd, err = unix.Openat2(l.fd, path, &how)
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	if errors.Is(err, unix.ENOSYS) { // a kernel of before 2020
		fd, err = unix.Openat(l.fd, path, flags|unix.O_NOFOLLOW, 0)
	}
	if errors.Is(err, unix.EXDEV) {
		err = errMounted
	}
	return fd, err
}

// homeError is a folder below a root that the workspace keeps, as a mount shows it there.
type homeError struct{ path, what string }

func (h *homeError) Error() string {
	if h.path == "" {
		return fmt.Sprintf("it is %s, which a mount shows there", h.what)
	}
	return fmt.Sprintf("%s is %s, of the workspace itself, which a mount shows there", layout.EncodePath(h.path), h.what)
}

// inode is a folder, by whatever path.
type inode struct{ dev, ino uint64 }

func inodeOf(st *unix.Stat_t) inode { return inode{uint64(st.Dev), st.Ino} }

// homeOf gives the folders of a workspace in which no catalog has anything, with what they are called.
func homeOf(workspace string) (map[inode]string, error) {
	home := map[inode]string{}
	for _, dir := range append(layout.KeptDirs(), "", layout.InboxDir) {
		path := filepath.Join(workspace, dir)
		var st unix.Stat_t
		if err := unix.Stat(path, &st); errors.Is(err, unix.ENOENT) {
			continue
		} else if err != nil {
			return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
		}
		home[inodeOf(&st)] = layout.EncodePath(path)
	}
	return home, nil
}

// stat is how a folder itself stands.
func (l *lister) stat(path string) (mtime int64, inode uint64, err error) {
	var st unix.Stat_t
	if path == "" {
		err = unix.Fstat(l.fd, &st)
	} else {
		err = unix.Fstatat(l.fd, path, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.ENOTDIR
	}
	if err == nil && uint64(st.Dev) != l.dev {
		err = errMounted
	}
	return time.Unix(st.Mtim.Unix()).UnixNano(), st.Ino, err
}

// list reads a folder. partial is the error of entries that could not be looked at.
func (l *lister) list(path string, into []entry) (n node, partial, err error) {
	n = node{path: path, state: Present, pages: 1, entries: into}
	fd, err := l.open(path)
	if err != nil {
		return n, nil, err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return n, nil, err
	}
	if uint64(st.Dev) != l.dev {
		return n, nil, errMounted
	}
	if what := l.home[inodeOf(&st)]; what != "" {
		return n, nil, &homeError{path, what}
	}
	n.mtime, n.inode = time.Unix(st.Mtim.Unix()).UnixNano(), st.Ino
	for {
		got, err := unix.ReadDirent(fd, l.buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return n, nil, err
		}
		if got <= 0 {
			break
		}
		if err := n.take(fd, l.buf[:got]); err != nil {
			partial = err
		}
	}
	if err := unix.Fstat(fd, &st); err != nil {
		return n, nil, err
	}
	n.stirred = time.Unix(st.Mtim.Unix()).UnixNano() != n.mtime // a name that was moved meanwhile may be listed twice, or not at all
	slices.SortFunc(n.entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	n.entries = slices.CompactFunc(n.entries, func(a, b entry) bool { return a.name == b.name })
	return n, partial, nil
}

// take reads one buffer of directory entries, as Linux lays them out: inode, offset, length,
// type, name.
func (n *node) take(fd int, buf []byte) (partial error) {
	const head = 19
	for len(buf) > head {
		length := int(binary.NativeEndian.Uint16(buf[16:]))
		if length < head || length > len(buf) {
			return unix.EIO
		}
		one := buf[:length]
		buf = buf[length:]
		name := one[head:]
		if i := slices.Index(name, 0); i >= 0 {
			name = name[:i]
		}
		if s := string(name); s != "." && s != ".." {
			e := entry{name: s, inode: binary.NativeEndian.Uint64(one)}
			if err := e.stat(fd, one[18] == unix.DT_DIR); errors.Is(err, unix.ENOENT) {
				continue // it vanished
			} else if err != nil {
				partial = err
				continue
			}
			n.entries = append(n.entries, e)
		}
	}
	return partial
}

// stat looks at an entry; of a folder nothing is asked here.
func (e *entry) stat(fd int, isFolder bool) error {
	if isFolder {
		e.kind = folder
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstatat(fd, e.name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	e.inode = st.Ino
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		e.kind = folder
		return nil
	case unix.S_IFREG:
		e.kind = file
	case unix.S_IFLNK:
		e.kind = link
	default:
		e.kind = other
	}
	e.size, e.mtime, e.ctime = st.Size, time.Unix(st.Mtim.Unix()).UnixNano(), time.Unix(st.Ctim.Unix()).UnixNano()
	return nil
}

// deviceOf names the file system of a root, the same after a restart.
func deviceOf(root string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Clean(root), &st); err != nil {
		return "", err
	}
	return nameOf(&st), nil
}

func nameOf(st *unix.Statfs_t) string {
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:4], uint32(st.Fsid.Val[0]))
	binary.LittleEndian.PutUint32(b[4:], uint32(st.Fsid.Val[1]))
	return hexOf(b[:])
}
