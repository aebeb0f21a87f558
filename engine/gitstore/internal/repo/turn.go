package repo

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Turn is the right of one Bagpipe process to publish. Two locks give it in the order of
// asking: a process that waits for the first holds the second, so that the process that
// just published cannot take the first again before those that wait.
type Turn struct{ unlock func() error }

// The locks' files; they hold nothing and may be deleted between runs.
const (
	turnFile = layout.StateDir + "/publish.lock"
	nextFile = layout.StateDir + "/publish.next"
)

// TakeTurn waits for the turn.
func (r *Repo) TakeTurn() (*Turn, error) {
	next, err := r.lock(r.State(nextFile))
	if err != nil {
		return nil, err
	}
	unlock, err := r.lock(r.State(turnFile))
	if err = errors.Join(err, next()); err != nil {
		if unlock != nil {
			err = errors.Join(err, unlock())
		}
		return nil, err
	}
	return &Turn{unlock}, nil
}

// Release gives the turn up.
func (t *Turn) Release() error { return t.unlock() }

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

// lock waits for the lock of a file, making its folder when that was deleted, and gives what ends it.
func (r *Repo) lock(file string) (unlock func() error, err error) {
	told, made := false, false
	for waited, pause := time.Duration(0), time.Millisecond; ; waited += pause {
		unlock, err := disk.TryLockFile(file, 0o666)
		switch {
		case unlock != nil:
			return unlock, nil
		case !made:
			made = true
			if err := r.MkdirAll(filepath.Dir(file)); err != nil {
				return nil, fmt.Errorf("lock %s: %w", file, err)
			}
			waited -= pause
			continue
		case err != nil:
			return nil, fmt.Errorf("lock %s: %w", file, err)
		case waited >= lockGiven:
			return nil, fmt.Errorf("lock %s: another Bagpipe process has held it for %s; is one stopped (kill -CONT it), or its disk?", file, lockGiven)
		case waited >= lockTold && !told:
			told = true
			r.Log.Warn("waiting for another Bagpipe process to publish", "lock", file)
		case waited > 100*time.Millisecond:
			pause = lockPause
		}
		time.Sleep(pause)
	}
}
