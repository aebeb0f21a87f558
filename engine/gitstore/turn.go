package gitstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// turn is the right of one Bagpipe process to publish. Two locks give it in the
// order of asking: who waits for the first holds the second, so that the process
// that just published cannot take the first again before those who wait.
type turn struct{ lock *flock.Flock }

// The locks' files; they hold nothing and may be deleted between runs.
const (
	turnFile = layout.StateDir + "/publish.lock"
	nextFile = layout.StateDir + "/publish.next"
)

func (s *Store) takeTurn() (*turn, error) {
	next := s.lockFile(nextFile)
	lock := s.lockFile(turnFile)
	if err := s.lockState(next); err != nil {
		return nil, err
	}
	err := s.lockState(lock)
	if err = errors.Join(err, next.Unlock()); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return &turn{lock}, nil
}

// lockState waits for a lock, making the folder when it was deleted.
func (s *Store) lockState(l *flock.Flock) error {
	if ok, err := l.TryLock(); ok && err == nil {
		return nil
	}
	if err := disk.MkdirAllFS(s.fs, filepath.Join(s.root, layout.StateDir), 0o755); err != nil {
		return fmt.Errorf("lock %s: %w", l.Path(), err)
	}
	return s.waitLock(l)
}

// A publication takes milliseconds. One that takes longer is told, and one that
// does not end (a stopped process) is an error rather than a silent wait.
const (
	lockTold  = 5 * time.Second
	lockGiven = time.Minute
	lockPause = 20 * time.Millisecond
)

func (s *Store) waitLock(l *flock.Flock) error {
	told := false
	for waited, pause := time.Duration(0), time.Millisecond; ; waited += pause {
		ok, err := l.TryLock()
		if ok || err != nil {
			return wrapLock(l, err)
		}
		switch {
		case waited >= lockGiven:
			return fmt.Errorf("lock %s: another Bagpipe process has held it for %s; is one stopped (kill -CONT it), or its disk?", l.Path(), lockGiven)
		case waited >= lockTold && !told:
			told = true
			s.log.Warn("waiting for another Bagpipe process to publish", "lock", l.Path())
		case waited > 100*time.Millisecond:
			pause = lockPause
		}
		time.Sleep(pause)
	}
}

func wrapLock(l *flock.Flock, err error) error {
	if err != nil {
		return fmt.Errorf("lock %s: %w", l.Path(), err)
	}
	return nil
}

func (t *turn) release() error { return t.lock.Unlock() }

func (s *Store) statePath(rel string) string { return filepath.Join(s.root, filepath.FromSlash(rel)) }

// lockFile is a lock in .bagpipe; its mode is the umask's, so that a group can
// share a workspace.
func (s *Store) lockFile(name string) *flock.Flock {
	return flock.New(s.statePath(name), flock.SetPermissions(0o666))
}
