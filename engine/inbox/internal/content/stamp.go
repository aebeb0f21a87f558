package content

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

// Stamp is the state of every entry of a folder: path, type, size, inode, modification
// and change time. Nobody can set a change time, so a folder whose stamp is as it was
// holds the bytes that it held.
type Stamp [sha256.Size]byte

// Tick is more than the step in which a file system's clock advances: two changes within
// one step bear one time.
const Tick = 100 * time.Millisecond

// StampOf opens no file. It reports false where a stamp proves nothing: the folder has
// changed within the last tick before now, or lies on a network file system.
func StampOf(ctx context.Context, dir string, now time.Time) (s Stamp, proves bool, err error) {
	h, newest := sha256.New(), time.Time{}
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
		_, err = fmt.Fprintf(h, "%s\t%o\t%d\t%d\t%d\t%d\n", layout.EncodePath(at[len(dir):]), st.Mode&unix.S_IFMT, st.Size, st.Ino,
			time.Unix(st.Mtim.Unix()).UnixNano(), changed.UnixNano())
		return err
	})
	h.Sum(s[:0])
	return s, now.Sub(newest) > Tick && !IsNetwork(dir), err
}
