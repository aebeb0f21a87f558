package content

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

// Stamp is the state of every entry of a folder: path, type, size, inode, modification
// and change time. Nobody can set a change time, so a folder whose stamp is as it was
// holds the bytes that it held.
type Stamp struct {
	all    [sha256.Size]byte
	linked [sha256.Size]byte // without the change times of files, with how many names each has above least
	least  uint64            // names of the file that has fewest
}

// Linked reports whether two stamps differ only as they do where each file got a further name
// since, or lost one, which a file's change time tells like a write: the other times, the
// sizes and the inodes are the same. A write between two such looks is not seen here. Who has
// the names has the bytes too, and what is made of them is held against their digests.
func (s Stamp) Linked(to Stamp) bool { return s.linked == to.linked && s.least != to.least }

// Tick is more than the step in which a file system's clock advances: two changes within
// one step bear one time.
const Tick = 100 * time.Millisecond

// StampOf opens no file. It reports false where a stamp proves nothing: the folder has
// changed within the last tick before now, or lies on a network file system.
func StampOf(ctx context.Context, dir string, now time.Time) (s Stamp, proves bool, err error) {
	h, linked, newest := sha256.New(), sha256.New(), time.Time{}
	var names []uint64
	var line []byte
	err = filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return &fs.PathError{Op: "lstat", Path: at, Err: err}
		}
		changed := time.Unix(st.Ctim.Unix())
		newest = Later(newest, changed)
		line = fmt.Appendf(line[:0], "%s\t%o\t%d\t%d\t%d\t", layout.EncodePath(at[len(dir):]), st.Mode&unix.S_IFMT, st.Size, st.Ino,
			time.Unix(st.Mtim.Unix()).UnixNano())
		n := len(line)
		line = fmt.Appendf(line, "%d\n", changed.UnixNano())
		h.Write(line)
		if st.Mode&unix.S_IFMT == unix.S_IFREG {
			names, line = append(names, uint64(st.Nlink)), line[:n]
		}
		linked.Write(line)
		return nil
	})
	if len(names) > 0 {
		s.least = slices.Min(names)
	}
	for _, n := range names {
		line = fmt.Appendf(line[:0], "%d\n", n-s.least)
		linked.Write(line)
	}
	h.Sum(s.all[:0])
	linked.Sum(s.linked[:0])
	return s, now.Sub(newest) > Tick && !IsNetwork(dir), err
}
