package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// The rules are: an original that stays is known by its path, by the state of what is
// in it, and by which file or folder it is. The state covers name, type, size and
// modification time of every entry, and no permission: the command that a waiting drop
// shows may be given afterwards, too. The same state at the same path is the same
// original, also on another disk; another state of the same file or folder is an
// original that changed; anything else is another drop.

// seizeOriginal copies a drop whose original stays. Of several takers the first one to
// commit has it: the engine asks for the original within its transaction.
func (b *taker) seizeOriginal(ctx context.Context, d Drop, t Taken) Result {
	dir := b.intakeOf(t.ID)
	before, err := b.OriginalOf(ctx, d.Path)
	if err == nil {
		err = rewriteJournal(dir, map[string]any{"mode": modeCopy, "original": before})
	}
	if err == nil {
		err = disk.SyncDir(dir)
	}
	if err == nil {
		err = b.verify(ctx, d, d.Path)
	}
	if err == nil {
		err = b.copyIn(ctx, d.Path, t)
	}
	if err == nil {
		var after layout.Original
		if after, err = b.OriginalOf(ctx, d.Path); err == nil && after != before {
			err = ErrChanged
		}
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && !content.Exists(d.Path) {
			err = ErrGone
		}
		return Result{Err: errors.Join(err, disk.RemoveTree(t.Path), discardIntake(dir))}
	}
	t.Original = &before
	return Result{Taken: t}
}

// Discard forgets a copy whose original stays, before an item is made of it.
func (b *taker) Discard(t Taken) error {
	if t.Original == nil || t.Promoted {
		return fmt.Errorf("discard drop %s: it is no copy of an original that stays", layout.EncodePath(t.Name))
	}
	return errors.Join(disk.RemoveTree(t.Path), discardIntake(b.intakeOf(t.ID)))
}

// OriginalOf looks at an original. It opens no file.
func (b *taker) OriginalOf(ctx context.Context, path string) (layout.Original, error) {
	o := layout.Original{Path: b.shorten(path)}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return o, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	o.File = fmt.Sprintf("%d", st.Ino)
	if birth, ok := birthOf(path); ok {
		o.File += fmt.Sprintf(".%d", birth.UnixNano())
	}
	h := sha256.New()
	err := filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		rel, err := filepath.Rel(path, at)
		if err != nil {
			return err
		}
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		size := info.Size()
		if info.IsDir() {
			size = 0
		}
		_, err = fmt.Fprintf(h, "%s\t%s\t%d\t%s\n", layout.EncodePath(rel), info.Mode().Type(), size, info.ModTime().UTC().Format(time.RFC3339Nano))
		return err
	})
	o.State = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return o, err
}

// removeOwn removes what may be removed of what lies beside an original that stays.
func removeOwn(t Taken, err error) error {
	if t.Original != nil && (errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS)) {
		return nil
	}
	return err
}

// birthOf is when a file was made, where its file system knows.
func birthOf(path string) (time.Time, bool) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}, false
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)), true
}
