package gitstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bagpipe/layout/disk"
)

// refLock is Git's own lock on the branch, REF.lock. The rules are:
//
//   - The lock's bytes are written and synced under a name of our own beside it,
//     REF.bagpipe.lock (names that end in .lock are no refs to Git), and the lock
//     is taken by linking that file to REF.lock, which fails when it exists, as
//     O_EXCL does. So the lock is held for a moment only.
//   - A REF.lock that is the same file as REF.bagpipe.lock was left by a dead
//     Bagpipe: a live one would hold the turn lock, which we hold. It is removed.
//   - Any other REF.lock belongs to a git program. It is waited for, and never
//     removed.
//   - Before the branch moves, it is read again under the lock and compared.
type refLock struct {
	s     *Store
	file  disk.File
	taken bool
	moved bool // the branch is this file now
}

const (
	refLockWait  = 5 * time.Second
	refLockPause = 2 * time.Millisecond
)

func (s *Store) refLockPath() string { return s.refPath() + ".lock" }
func (s *Store) ownLockPath() string { return s.refPath() + ".bagpipe.lock" }

// prepareRefLock makes the file that will become the lock. It must be called
// with the turn lock held.
func (s *Store) prepareRefLock() (*refLock, error) {
	f, err := s.createOwnLock()
	if err != nil {
		return nil, fmt.Errorf("prepare lock of %s: %w", s.branch, err)
	}
	return &refLock{s: s, file: f}, nil
}

func (s *Store) createOwnLock() (disk.File, error) {
	const flags = os.O_CREATE | os.O_EXCL | os.O_RDWR
	f, err := s.fs.OpenFile(s.ownLockPath(), flags, 0o644)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := disk.MkdirAllFS(s.fs, filepath.Dir(s.refPath()), 0o755); err != nil {
			return nil, err
		}
	case errors.Is(err, fs.ErrExist):
		if err := s.clearRefLock(); err != nil {
			return nil, err
		}
	default:
		return f, err
	}
	return s.fs.OpenFile(s.ownLockPath(), flags, 0o644)
}

// clearRefLock removes what a dead Bagpipe left: the lock first and durably, for
// without our own file beside it, it would look like another's. A crash in
// between leaves our own file, which the next call removes.
func (s *Store) clearRefLock() error {
	own, err := s.fs.Lstat(s.ownLockPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lock, err := s.fs.Lstat(s.refLockPath())
	if err == nil && os.SameFile(own, lock) {
		s.log.Warn("removed the branch lock of a dead process", "file", s.refLockPath())
		if err := s.removeRefLock(); err != nil {
			return err
		}
	}
	return s.fs.Remove(s.ownLockPath())
}

func (s *Store) removeRefLock() error {
	if err := s.fs.Remove(s.refLockPath()); err != nil {
		return err
	}
	return s.fs.SyncDir(filepath.Dir(s.refPath()))
}

// write fills in where the branch will point, and syncs it.
func (l *refLock) write(h Hash) error {
	if _, err := l.file.WriteAt([]byte(h.String()+"\n"), 0); err != nil {
		return fmt.Errorf("write lock of %s: %w", l.s.branch, err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("sync lock of %s: %w", l.s.branch, err)
	}
	return nil
}

// RefLockedError says that another program's lock on the branch does not go
// away.
type RefLockedError struct {
	Branch, File string
	Waited       time.Duration
}

func (e *RefLockedError) Error() string {
	return fmt.Sprintf("lock %s: %s exists since more than %s: a git program holds it, or died; when none is running, remove that file",
		e.Branch, e.File, e.Waited)
}

// take takes the lock, waiting for other programs.
func (l *refLock) take() error {
	if l.taken {
		return nil
	}
	patience := time.NewTimer(refLockWait)
	defer patience.Stop()
	for pause := refLockPause; ; pause = min(2*pause, 100*time.Millisecond) {
		err := l.s.fs.Link(l.s.ownLockPath(), l.s.refLockPath())
		if err == nil {
			l.taken = true
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("lock %s: %w", l.s.branch, err)
		}
		select {
		case <-patience.C:
			return &RefLockedError{l.s.branch, l.s.refLockPath(), refLockWait}
		case <-time.After(pause):
		}
	}
}

// move moves the branch from one commit to the one written, if it is still
// there (errMoved). moved tells whether the branch points at the new commit,
// even when an error followed.
func (l *refLock) move(from Hash) (moved bool, err error) {
	if err := l.take(); err != nil {
		return false, err
	}
	now, err := l.s.readRef()
	if err != nil {
		return false, err
	}
	if now != from {
		return false, errMoved
	}
	// A crash just before leaves the lock, which the next Open recognises; just
	// after, the branch as moved, and our own file beside it.
	if err := l.s.fs.Rename(l.s.refLockPath(), l.s.refPath()); err != nil {
		return false, fmt.Errorf("move %s: %w", l.s.branch, err)
	}
	l.taken, l.moved = false, true
	// A crash just before this sync may take the move back; nobody was answered.
	if err := l.s.fs.SyncDir(filepath.Dir(l.s.refPath())); err != nil {
		return true, fmt.Errorf("move %s: it points at the new commit, which may not be durable: %w", l.s.branch, err)
	}
	return true, nil
}

// release gives the lock up. What cannot be removed now is recognised later.
//
// The file that became the branch stays open until the next one has taken its
// place: to free a file costs a millisecond on a disk that discards at once, and
// so it is done beside the next group's syncs (closeOldRef), where no one waits.
func (l *refLock) release() {
	if l.file == nil {
		return
	}
	var errs []error
	if l.taken {
		errs = append(errs, l.s.removeRefLock())
	}
	if errs == nil || errs[0] == nil { // without our own file the lock would look like another's
		errs = append(errs, l.s.fs.Remove(l.s.ownLockPath()))
	}
	if l.moved {
		errs = append(errs, l.s.closeOldRef())
		l.s.own.oldRef, l.s.own.ref = l.s.own.ref, l.file
	} else {
		errs = append(errs, l.file.Close())
	}
	l.file, l.taken, l.moved = nil, false, false
	if err := errors.Join(errs...); err != nil {
		l.s.log.Warn("release branch lock", "branch", l.s.branch, "error", err)
	}
}

// closeOldRef closes the file that was the branch before the last move.
func (s *Store) closeOldRef() error {
	f := s.own.oldRef
	s.own.oldRef = nil
	return closeFile(f)
}

func closeFile(f disk.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}
