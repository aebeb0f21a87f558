package follow

import (
	"sync"

	"github.com/gofrs/flock"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout"
)

// Options tell a Follower about its store.
type Options struct {
	Repo *repo.Repo
	// Wants reports whether a committed path is shown as a file.
	Wants func(path string) bool
	// Gone visits paths that were shown before a commit, and are not committed there.
	Gone func(at odb.Hash, visit func(path string) error) error
	// Edited is told of a file that a person edited in place, after the edit was kept
	// beside as keptAs. nil: the edit is logged.
	Edited func(path, keptAs string)
	// Tip gives the commit where the branch is now.
	Tip func() (odb.Hash, error)
	// Stop is closed when the store closes.
	Stop <-chan struct{}
}

// Change is one committed file that is not as it was.
type Change struct {
	Path    string
	Data    []byte
	Deleted bool
	Foreign bool // by another writer than this store
}

// Follower writes the followed files.
type Follower struct {
	o     Options
	files writer
	hurry chan struct{} // ends a wait

	// mu guards the fields below. changed is told when any of them is not as it was.
	mu      sync.Mutex
	changed *sync.Cond
	backlog backlog
	busy    *pending // is being written
	done    bool     // no change will be added any more
	tip     odb.Hash // of the move of the branch added last
	half    bool     // more changes of that move will be added
	lost    lost
	room    room
	turn    turn
	mark    marker
	waiters int // calls of CaughtUp
}

// lost says which files are not in the backlog.
type lost struct {
	yes     bool     // those that changed since from
	from    odb.Hash // zero: all
	working bool     // workOut is writing them
}

// room says whether the disk takes files.
type room struct {
	err     error // the disk takes nothing at present
	refused int   // how often it took nothing
}

// turn says whether this process follows.
type turn struct {
	held   bool
	lock   *flock.Flock    // .bagpipe/follow.lock
	missed map[string]bool // paths committed by this process while another one followed
}

const lockFile = layout.StateDir + "/follow.lock"

// New makes a Follower of a branch that is at tip.
func New(o Options, tip odb.Hash) *Follower {
	f := &Follower{
		o: o, files: writer{repo: o.Repo, edited: o.Edited, above: map[string]bool{}}, hurry: make(chan struct{}, 1),
		backlog: newBacklog(), tip: tip, mark: marker{repo: o.Repo},
		turn: turn{lock: o.Repo.LockFile(lockFile), missed: map[string]bool{}},
	}
	f.changed = sync.NewCond(&f.mu)
	f.turn.held, _ = f.turn.lock.TryLock() // the store has made the folder; Add tries again
	return f
}

// takeOver tries to become the process that follows: the files that the one before may
// have left undone are worked out from its mark.
func (f *Follower) takeOver() bool {
	if f.turn.held {
		return true
	}
	f.turn.held, _ = f.turn.lock.TryLock() // no error: the next Add tries again
	if f.turn.held {
		clear(f.turn.missed)
		f.lose(f.mark.read())
	}
	return f.turn.held
}

// lose gives the backlog up: the files that changed since the commit will be worked out.
func (f *Follower) lose(since odb.Hash) {
	f.lost.yes, f.lost.from = true, since
	f.backlog.clear()
	f.changed.Broadcast()
}

// Add queues the changes of one move of the branch, or, before its last ones, some of them. It
// waits while the backlog is full.
func (f *Follower) Add(from, to odb.Hash, changes []Change, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.backlog.full(1) && f.room.err == nil && !f.lost.working {
		f.changed.Wait()
	}
	if f.backlog.full(1) {
		f.lose(f.backlog.oldest().from)
	}
	f.backlog.seq++
	f.tip, f.half = to, more
	for _, c := range changes {
		switch {
		case f.lost.yes || !f.o.Wants(c.Path):
		case f.turn.held:
			f.backlog.put(c.Path, &pending{data: c.Data, deleted: c.Deleted, from: from, seq: f.backlog.seq})
		case !c.Foreign && len(f.turn.missed) < maxPaths:
			f.turn.missed[c.Path] = true
		}
	}
	f.takeOver()
	if f.pressed() {
		f.press()
	}
	f.changed.Broadcast()
}

// Finish says that no change will be added any more: Run ends when the backlog is written.
func (f *Follower) Finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = true
	f.changed.Broadcast()
}
