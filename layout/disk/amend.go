package disk

import (
	"errors"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"
)

// amendable is how large a file may become by Amend: what the system takes in by one
// write, or not at all, when the process is killed. It is a page of memory.
const amendable = 4096

// amended hold what Amend reads.
var amended = sync.Pool{New: func() any { return new([amendable]byte) }}

// Amend gives a small file new bytes where it stands, without a file made beside and
// one removed, which takes ten times as long. edit is given the bytes, which it must not keep, and answers with
// the new ones, which must not be fewer; with nil it leaves the file as it is. Who
// opens the file meanwhile waits, by a lease of the kernel's, so that every reader
// sees the old bytes or the new ones. It syncs nothing: a power cut may leave the old
// bytes, then zeros.
//
// done is false when nothing was done: because edit said so, or because it cannot be
// done here. That is where somebody has it open, it has a second
// name or is too large, and on file systems not known to be this machine's own. The
// error is fs.ErrNotExist where there is no such file; another says that the file may hold half of each.
func (OS) Amend(name string, edit func(old []byte) []byte) (done bool, err error) {
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return false, fs.ErrNotExist
	}
	if err != nil {
		return false, nil
	}
	defer unix.Close(fd) // gives the lease back, too
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return false, nil
	}
	buf := amended.Get().(*[amendable]byte)
	defer amended.Put(buf)
	old, ok := readWhole(fd, buf[:])
	if !ok {
		return false, nil
	}
	data := edit(old)
	if data == nil || len(data) < len(old) || len(data) > amendable {
		return false, nil
	}
	n, err := unix.Pwrite(fd, data, 0)
	if err == nil && n == len(data) {
		return true, nil
	}
	if _, err := unix.Pwrite(fd, old, 0); err != nil {
		return false, &fs.PathError{Op: "amend", Path: name, Err: err}
	}
	if err := unix.Ftruncate(fd, int64(len(old))); err != nil {
		return false, &fs.PathError{Op: "amend", Path: name, Err: err}
	}
	return false, nil
}

// readWhole reads a file of one name on a file system of this machine's own into buf.
func readWhole(fd int, buf []byte) (data []byte, ok bool) {
	var st unix.Stat_t
	var sys unix.Statfs_t
	if unix.Fstat(fd, &st) != nil || st.Nlink != 1 || st.Size > int64(len(buf)) || unix.Fstatfs(fd, &sys) != nil || !leased[int64(uint32(sys.Type))] {
		return nil, false
	}
	n, err := unix.Pread(fd, buf, 0)
	return buf[:max(n, 0)], err == nil && int64(n) == st.Size
}

// leased are the file systems whose leases hold for every reader, as no other machine
// has them mounted.
var leased = map[int64]bool{
	unix.EXT4_SUPER_MAGIC:      true, // and ext2, ext3
	unix.XFS_SUPER_MAGIC:       true,
	unix.BTRFS_SUPER_MAGIC:     true,
	unix.F2FS_SUPER_MAGIC:      true,
	unix.TMPFS_MAGIC:           true,
	unix.OVERLAYFS_SUPER_MAGIC: true,
	0x2fc12fc1:                 true, // ZFS
}
