package ref

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout/disk"
)

// ErrMoved says that the branch is not at the commit that a move begins from.
var ErrMoved = errors.New("another writer moved the branch")

// Locker makes the locks of one store, one after the other.
//
// The file that became the branch stays open until the next one has taken its place: to
// free a file costs a millisecond on a disk that discards at once, so the old file is
// closed beside the next group's syncs (CloseOld), where no caller waits.
type Locker struct {
	repo         *repo.Repo
	current, old disk.File
}

// NewLocker makes a Locker that holds no file.
func NewLocker(r *repo.Repo) *Locker { return &Locker{repo: r} }

// CloseOld closes the file that was the branch before the last move.
func (k *Locker) CloseOld() error {
	f := k.old
	k.old = nil
	return closeFile(f)
}

// Close closes both files.
func (k *Locker) Close() error {
	f := k.current
	k.current = nil
	return errors.Join(k.CloseOld(), closeFile(f))
}

func closeFile(f disk.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// Lock is Git's own lock on the branch, REF.lock. The rules are:
//
//   - The lock's bytes are written and synced under a name of Bagpipe's own beside it,
//     REF.bagpipe.lock (names that end in .lock are no refs to Git), and the lock is taken
//     by linking that file to REF.lock. The link fails when REF.lock exists, as O_EXCL
//     does. So the lock is held for a moment only.
//   - A REF.lock that is the same file as REF.bagpipe.lock was left by a dead Bagpipe: a
//     living one would hold the turn lock, which this process holds. The lock is removed.
//   - Any other REF.lock belongs to a git program. The lock is waited for, never removed.
//   - Before the branch moves, the branch is read again under the lock and compared.
type Lock struct {
	locker *Locker
	repo   *repo.Repo
	file   disk.File
	taken  bool
	moved  bool // the branch is this file now
}

const (
	lockWait  = 5 * time.Second
	lockPause = 2 * time.Millisecond
)

func lockPath(r *repo.Repo) string { return path(r) + ".lock" }
func ownPath(r *repo.Repo) string  { return path(r) + ".bagpipe.lock" }

// Prepare makes the file that will become the lock. The caller holds the turn lock.
func (k *Locker) Prepare() (*Lock, error) {
	const flags = os.O_CREATE | os.O_EXCL | os.O_RDWR
	f, err := k.repo.OpenFile(ownPath(k.repo), flags, 0o644)
	if errors.Is(err, fs.ErrExist) {
		if err = ClearLock(k.repo); err == nil {
			f, err = k.repo.FS.OpenFile(ownPath(k.repo), flags, 0o644)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("prepare lock of %s: %w", k.repo.Branch, err)
	}
	return &Lock{locker: k, repo: k.repo, file: f}, nil
}

// ClearLock removes the leftovers of a dead Bagpipe: the lock first and durably, for without the
// own file beside it the lock would look like a git program's. A crash in between leaves
// the own file, which the next call removes.
func ClearLock(r *repo.Repo) error {
	own, err := r.FS.Lstat(ownPath(r))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lock, err := r.FS.Lstat(lockPath(r))
	if err == nil && os.SameFile(own, lock) {
		r.Log.Warn("removed the branch lock of a dead process", "file", lockPath(r))
		if err := removeLock(r); err != nil {
			return err
		}
	}
	return r.FS.Remove(ownPath(r))
}

func removeLock(r *repo.Repo) error {
	if err := r.FS.Remove(lockPath(r)); err != nil {
		return err
	}
	return r.FS.SyncDir(filepath.Dir(path(r)))
}

// Write fills in where the branch will point, and syncs the file.
func (l *Lock) Write(h odb.Hash) error {
	if _, err := l.file.WriteAt([]byte(h.String()+"\n"), 0); err != nil {
		return fmt.Errorf("write lock of %s: %w", l.repo.Branch, err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("sync lock of %s: %w", l.repo.Branch, err)
	}
	return nil
}

// LockedError says that another program's lock on the branch does not go away.
type LockedError struct {
	Branch, File string
	Waited       time.Duration
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("lock %s: %s exists since more than %s: a git program holds it, or died; when none is running, remove that file",
		e.Branch, e.File, e.Waited)
}

// Take takes the lock, waiting for other programs.
func (l *Lock) Take() error {
	if l.taken {
		return nil
	}
	patience := time.NewTimer(lockWait)
	defer patience.Stop()
	for pause := lockPause; ; pause = min(2*pause, 100*time.Millisecond) {
		err := l.repo.FS.Link(ownPath(l.repo), lockPath(l.repo))
		if err == nil {
			l.taken = true
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("lock %s: %w", l.repo.Branch, err)
		}
		select {
		case <-patience.C:
			return &LockedError{l.repo.Branch, lockPath(l.repo), lockWait}
		case <-time.After(pause):
		}
	}
}

// Move moves the branch from one commit to the written one; ErrMoved when the branch is
// not at from. moved reports whether the branch points at the new commit, even when an
// error followed.
func (l *Lock) Move(from odb.Hash) (moved bool, err error) {
	if err := l.Take(); err != nil {
		return false, err
	}
	now, err := Read(l.repo)
	if err != nil {
		return false, err
	}
	if now != from {
		return false, ErrMoved
	}
	// A crash just before leaves the lock, which the next Open recognises; just after, the
	// branch as moved, and the own file beside it.
	if err := l.repo.FS.Rename(lockPath(l.repo), path(l.repo)); err != nil {
		return false, fmt.Errorf("move %s: %w", l.repo.Branch, err)
	}
	l.taken, l.moved = false, true
	// A crash just before this sync may take the move back; no caller was answered.
	if err := l.repo.FS.SyncDir(filepath.Dir(path(l.repo))); err != nil {
		return true, fmt.Errorf("move %s: it points at the new commit, which may not be durable: %w", l.repo.Branch, err)
	}
	return true, nil
}

// Renew makes a new file for the next move; a lock that was held is taken again.
func (l *Lock) Renew(hold bool) error {
	l.Release()
	next, err := l.locker.Prepare()
	if err != nil {
		return err
	}
	*l = *next
	if hold {
		return l.Take()
	}
	return nil
}

// Held reports whether the lock is taken.
func (l *Lock) Held() bool { return l.taken }

// Release gives the lock up. A file that cannot be removed now is recognised later.
func (l *Lock) Release() {
	if l.file == nil {
		return
	}
	var err error
	if l.taken {
		err = removeLock(l.repo)
	}
	if err == nil { // without the own file the lock would look like a git program's
		err = l.repo.FS.Remove(ownPath(l.repo))
	}
	if l.moved {
		err = errors.Join(err, l.locker.CloseOld())
		l.locker.old, l.locker.current = l.locker.current, l.file
	} else {
		err = errors.Join(err, l.file.Close())
	}
	l.file, l.taken, l.moved = nil, false, false
	if err != nil {
		l.repo.Log.Warn("release branch lock", "branch", l.repo.Branch, "error", err)
	}
}
