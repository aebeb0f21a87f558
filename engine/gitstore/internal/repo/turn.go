package repo

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"bagpipe/layout"
)

// Turn is the right of one Bagpipe process to publish. Two locks give it in the order of
// asking: a process that waits for the first holds the second, so that the process that
// just published cannot take the first again before those that wait.
type Turn struct{ lock *flock.Flock }

// The locks' files; they hold nothing and may be deleted between runs.
const (
	turnFile = layout.StateDir + "/publish.lock"
	nextFile = layout.StateDir + "/publish.next"
)

// TakeTurn waits for the turn.
func (r *Repo) TakeTurn() (*Turn, error) {
	next, lock := r.LockFile(nextFile), r.LockFile(turnFile)
	if err := r.lock(next); err != nil {
		return nil, err
	}
	if err := errors.Join(r.lock(lock), next.Unlock()); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return &Turn{lock}, nil
}

// Release gives the turn up.
func (t *Turn) Release() error { return t.lock.Unlock() }

// LockFile is a lock in .bagpipe; its mode is the umask's, so that a group of people can
// share a workspace.
func (r *Repo) LockFile(rel string) *flock.Flock {
	return flock.New(r.State(rel), flock.SetPermissions(0o666))
}

// A publication takes milliseconds. A longer wait is logged, and a wait for a process that
// does not go on (it is stopped) ends with an error.
const (
	lockTold  = 5 * time.Second
	lockGiven = time.Minute
	lockPause = 20 * time.Millisecond
)

// lock waits for a lock, making its folder when that was deleted.
func (r *Repo) lock(l *flock.Flock) error {
	told, made := false, false
	for waited, pause := time.Duration(0), time.Millisecond; ; waited += pause {
		ok, err := l.TryLock()
		switch {
		case ok && err == nil:
			return nil
		case !made:
			made = true
			if err := r.MkdirAll(filepath.Dir(l.Path())); err != nil {
				return fmt.Errorf("lock %s: %w", l.Path(), err)
			}
			waited -= pause
			continue
		case err != nil:
			return fmt.Errorf("lock %s: %w", l.Path(), err)
		case waited >= lockGiven:
			return fmt.Errorf("lock %s: another Bagpipe process has held it for %s; is one stopped (kill -CONT it), or its disk?", l.Path(), lockGiven)
		case waited >= lockTold && !told:
			told = true
			r.Log.Warn("waiting for another Bagpipe process to publish", "lock", l.Path())
		case waited > 100*time.Millisecond:
			pause = lockPause
		}
		time.Sleep(pause)
	}
}
