package gitstore

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"bagpipe/layout"
)

// follower writes the followed files behind the commits: one goroutine, which
// begins and ends with the owner. Paths that change again before their turn are
// written once. The backlog is bounded: the owner waits when it is full. While
// the disk takes nothing the owner does not wait: the backlog is given up, and
// worked out again from the trees when there is room.
//
// One process follows at a time, the one that holds .bagpipe/follow.lock: two
// would put back each other's older bytes. The others stand by, and take over
// when it ends.
//
// Files are changed at once for whoever reads them, in place or by a file beside that
// is swapped in. They are not synced: they can be written again from the commits.
// Marks in .bagpipe/followed say up to which commit they are right (mark.go); Repair
// does the rest.
type follower struct {
	s *Store

	// mu guards what follows. changed is told when any of it is not as it was.
	mu       sync.Mutex
	changed  *sync.Cond
	pending  map[string]*pendingFile
	queue    []string // the paths of pending, oldest first
	bytes    int      // of pending
	busy     *pendingFile
	done     bool // nothing will be added any more
	seq      uint64
	tip      Hash         // of the move of the branch told last
	full     error        // the disk takes nothing at present
	refused  int          // how often it took nothing
	held     bool         // this process follows
	lock     *flock.Flock // .bagpipe/follow.lock
	lost     bool         // what changed since lostFrom is not in pending
	lostFrom Hash
	working  bool            // workOut is writing it
	missed   map[string]bool // committed by this process while another followed
	mark     marker
	batch    int           // paths at the head of queue that have waited
	waiters  int           // calls of CaughtUp
	hurry    chan struct{} // ends the wait
}

type pendingFile struct {
	data    []byte
	deleted bool
	from    Hash   // where the branch was before the path was first queued
	seq     uint64 // which move queued it first
}

const (
	maxFollowPaths = 20_000
	maxFollowBytes = 24 << 20
	retryPause     = time.Second // after the disk took nothing
	maxRefused     = 3           // of a disk, until CaughtUp gives up

	// followLag is how long files are left to change again before they are written:
	// a step takes two transitions, and an item often several steps in a row, while
	// writing a file costs more than committing it.
	followLag = 200 * time.Millisecond
)

func newFollower(s *Store) *follower {
	f := &follower{s: s, pending: map[string]*pendingFile{}, missed: map[string]bool{}, tip: *s.tip.Load(), mark: marker{s: s}, hurry: make(chan struct{}, 1)}
	f.changed = sync.NewCond(&f.mu)
	f.lock = s.lockFile(followLockFile)
	f.held, _ = f.lock.TryLock() // the store has made the folder; add tries again
	return f
}

const followLockFile = layout.StateDir + "/follow.lock"

// takeOver tries to become the process that follows: what the one before may
// have left undone is worked out from its mark.
func (f *follower) takeOver() bool {
	if f.held {
		return true
	}
	f.held, _ = f.lock.TryLock() // not now is no error: the next add tries again
	if f.held {
		clear(f.missed)
		f.lose(f.s.readMark())
	}
	return f.held
}

// lose gives the backlog up: what changed since the commit will be worked out.
func (f *follower) lose(since Hash) {
	f.lost, f.lostFrom = true, since
	clear(f.pending)
	f.queue, f.bytes, f.batch = nil, 0, 0
	f.changed.Broadcast()
}

func (f *follower) crowded() bool {
	return len(f.pending) >= maxFollowPaths || f.bytes >= maxFollowBytes
}

// add queues the changes of one move. It is called by the owner, and waits
// while the backlog is full.
func (f *follower) add(a Advance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.crowded() && f.full == nil && !f.working {
		f.changed.Wait()
	}
	if f.crowded() {
		f.lose(f.pending[f.queue[0]].from)
	}
	f.seq++
	f.tip = a.To
	for _, c := range a.Changes {
		switch {
		case f.lost || !f.s.opts.Follow(c.Path):
		case f.held:
			f.put(c.Path, &pendingFile{c.Data, c.Deleted, a.From, f.seq})
		case !c.Foreign && len(f.missed) < maxFollowPaths:
			f.missed[c.Path] = true
		}
	}
	f.takeOver()
	if f.pressed() {
		f.press()
	}
	f.changed.Broadcast()
}

// put queues a file, or gives the one queued its newer bytes.
func (f *follower) put(path string, p *pendingFile) {
	if old := f.pending[path]; old != nil {
		f.bytes -= len(old.data)
		p.from, p.seq = old.from, old.seq
	} else {
		f.queue = append(f.queue, path)
	}
	f.pending[path] = p
	f.bytes += len(p.data)
}

// finish tells the follower that nothing will be added any more.
func (f *follower) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = true
	f.changed.Broadcast()
}

// run writes until finish; then it writes what is left and marks the end.
func (f *follower) run() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.lost && !f.done:
			f.workOut()
		case len(f.queue) > 0 && f.batch == 0:
			f.linger()
		case len(f.queue) > 0:
			f.step()
		case f.done:
			f.end()
			return
		default:
			f.mark.reached(f.tip)
			f.changed.Wait()
		}
	}
}

// end marks what was written, and lets another process follow. When the process
// that followed has ended before it saw this one's commits, their files are
// written here.
func (f *follower) end() {
	if !f.held {
		f.writeMissed()
	}
	f.mark.atEnd(f.tip, f.held && !f.lost)
	if err := f.lock.Unlock(); err != nil {
		f.s.log.Warn("unlock", "file", f.lock.Path(), "error", err)
	}
}

func (f *follower) writeMissed() {
	if len(f.missed) == 0 {
		return
	}
	if ok, err := f.lock.TryLock(); err != nil || !ok {
		return // it lives, and looks at the branch
	}
	v, err := f.s.Tip()
	for _, path := range slices.Sorted(maps.Keys(f.missed)) {
		if err != nil {
			break
		}
		var data []byte
		data, err = v.ReadFile(path)
		deleted := errors.Is(err, fs.ErrNotExist)
		if err == nil || deleted {
			err = f.write(path, &pendingFile{data: data, deleted: deleted})
		}
	}
	if err != nil {
		f.s.log.Warn("write followed files at the end; Repair will", "error", err)
	}
}

// step writes the oldest pending file, without the lock.
func (f *follower) step() {
	path := f.queue[0]
	p := f.pending[path]
	f.queue = f.queue[1:]
	f.batch--
	delete(f.pending, path)
	f.bytes -= len(p.data)
	f.busy = p
	f.mark.reached(p.from)
	f.mu.Unlock()
	err := f.write(path, p)
	f.mu.Lock()
	f.busy = nil
	f.wrote(path, p, err)
	f.changed.Broadcast()
}

// wrote notes the end of one write. What failed for want of room is tried again;
// any other failure (a folder in the way) concerns this file alone, and is tried
// again at the next start. So is everything that fails after finish.
func (f *follower) wrote(path string, p *pendingFile, err error) {
	if err != nil && (f.full == nil || !isFull(err)) {
		f.s.log.Error("write followed file", "path", path, "error", err)
	}
	f.full = nil
	if err == nil {
		return
	}
	if !isFull(err) || f.done {
		f.mark.broken = true
		return
	}
	f.full = err
	if f.pending[path] == nil && !f.lost {
		f.pending[path] = p
		f.bytes += len(p.data)
		f.queue = append([]string{path}, f.queue...)
	}
	f.pause()
}

func isFull(err error) bool {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		if errors.Is(err, full) {
			return true
		}
	}
	return false
}

// pause waits without the lock; finish ends it early.
func (f *follower) pause() {
	f.refused++
	f.changed.Broadcast()
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-time.After(retryPause):
	case <-f.s.stop:
	}
}

// workOut writes what may not be as committed since lostFrom. What is committed
// meanwhile is queued behind it.
func (f *follower) workOut() {
	from, to := f.lostFrom, f.tip
	f.lose(to)
	f.lost, f.working = false, true
	f.mu.Unlock()
	err := f.s.diffNames(from, to, func(path string, blob Hash) error {
		if !f.s.opts.Follow(path) {
			return nil
		}
		return f.writeAgain(path, blob)
	})
	f.mu.Lock()
	f.working = false
	switch {
	case err == nil:
		f.full = nil
		f.mark.ready = true
	case isFull(err):
		f.full = err
		f.lose(from)
		f.pause()
	case errors.Is(err, ErrClosed): // the next start goes on from the old mark
		f.mark.broken = true
	default:
		f.mark.broken = true
		f.s.log.Error("bring followed files in line", "from", from.String(), "to", to.String(), "error", err)
	}
	f.changed.Broadcast()
}

// writeAgain writes one file of workOut, if it is not as committed; only a full disk
// ends it. After finish the rest is left to the next start.
func (f *follower) writeAgain(path string, blob Hash) error {
	select {
	case <-f.s.stop:
		return ErrClosed
	default:
	}
	err := f.bringInLine(path, blob)
	if err == nil || isFull(err) {
		return err
	}
	f.s.log.Error("write followed file", "path", path, "error", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark.broken = true
	return nil
}
