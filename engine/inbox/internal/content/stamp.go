package content

import (
	"context"
	"crypto/sha256"
	"hash"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// Stamp is the state of every entry of a folder: path, type, size, inode, modification
// and change time. Nobody can set a change time, so a folder whose stamp is as it was
// holds the bytes that it held.
type Stamp struct {
	all    [sha256.Size]byte
	linked [sha256.Size]byte // without the change times of files, with how many names each has above least
	least  uint64            // names of the file that has fewest
	still  bool              // no file was written to in the last tick, so that a write gives its file another time
}

// Linked reports whether two stamps differ only as they do where each file got a further name
// since, or lost one, which a file's change time tells like a write: the other times, the
// sizes and the inodes are the same. A write between two such looks is not seen here. Who has
// the names has the bytes too, and what is made of them is held against their digests.
func (s Stamp) Linked(to Stamp) bool {
	return s.still && s.linked == to.linked && s.least != to.least
}

// ProvesLinked reports whether Linked can tell a write after the stamp from a further name. A stamp
// that proves nothing else may: to give a file a name changes no modification time.
func (s Stamp) ProvesLinked() bool { return s.still }

// Tick is more than the step in which a file system's clock advances: two changes within
// one step bear one time.
const Tick = 100 * time.Millisecond

// StampOf opens no file. It reports false where a stamp proves nothing: the folder has
// changed within the last tick before now, or lies on a network file system.
func StampOf(ctx context.Context, dir string, now time.Time) (s Stamp, proves bool, err error) {
	w := stamping{dir: dir, all: sha256.New(), linked: sha256.New()}
	err = w.entry(ctx, unix.AT_FDCWD, dir, "", 0)
	if len(w.names) > 0 {
		s.least = slices.Min(w.names)
	}
	for _, n := range w.names {
		w.line = append(strconv.AppendUint(w.line[:0], n-s.least, 10), '\n')
		w.linked.Write(w.line)
	}
	w.all.Sum(s.all[:0])
	w.linked.Sum(s.linked[:0])
	local := !IsNetwork(dir)
	s.still = local && now.Sub(w.written) > Tick
	return s, local && now.Sub(w.newest) > Tick, err
}

// stamping makes a Stamp.
type stamping struct {
	dir         string
	all, linked hash.Hash
	names       []uint64  // of each file, in the order of the walk
	newest      time.Time // change of anything
	written     time.Time // modification of a file
	line        []byte
}

// mostOpen is how many folders a stamp holds open, one in the other; those deeper are opened by their path and closed at once.
const mostOpen = 32

// entry adds what lies under a name in an open folder, and all below it, in the order of names;
// shown is its path in the stamp, and depth how many folders of that it lies in.
func (w *stamping) entry(ctx context.Context, in int, name, shown string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(in, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "lstat", Path: w.dir + shown, Err: err}
	}
	w.add(&st, shown)
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	fd, err := unix.Openat(in, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: w.dir + shown, Err: err}
	}
	below, err := disk.NamesIn(fd)
	if depth < mostOpen {
		defer unix.Close(fd) // read only: nothing can be lost
	} else {
		unix.Close(fd) // read only
	}
	if err != nil {
		return &fs.PathError{Op: "readdir", Path: w.dir + shown, Err: err}
	}
	slices.SortFunc(below, func(a, b disk.Named) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range below {
		at := shown + "/" + n.Name
		if depth < mostOpen {
			err = w.entry(ctx, fd, n.Name, at, depth+1)
		} else {
			err = w.entry(ctx, unix.AT_FDCWD, w.dir+at, at, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add adds one entry.
func (w *stamping) add(st *unix.Stat_t, shown string) {
	changed := time.Unix(st.Ctim.Unix())
	w.newest = Later(w.newest, changed)
	w.line = append(w.line[:0], layout.EncodePath(shown)...)
	modified := time.Unix(st.Mtim.Unix())
	for _, n := range []int64{int64(st.Mode & unix.S_IFMT), st.Size, int64(st.Ino), modified.UnixNano()} {
		w.line = strconv.AppendInt(append(w.line, '\t'), n, 10)
	}
	end := len(w.line)
	w.line = append(strconv.AppendInt(append(w.line, '\t'), changed.UnixNano(), 10), '\n')
	w.all.Write(w.line)
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		w.written = Later(w.written, modified)
		w.names, w.line = append(w.names, uint64(st.Nlink)), append(w.line[:end], '\n')
	}
	w.linked.Write(w.line)
}
