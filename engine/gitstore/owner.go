package gitstore

import (
	"runtime"
	"sync/atomic"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/layout/disk"
)

const (
	maxPending    = 4096     // edits that may wait; more callers block
	maxGroup      = 1000     // edits in one group
	maxGroupBytes = 64 << 20 // of objects in one group
)

// Reader reads committed files as they are when an edit is applied.
type Reader interface {
	// ReadFile gives a file's bytes, which must not be changed; fs.ErrNotExist
	// when there is none.
	ReadFile(path string) ([]byte, error)
}

// Change is what an edit wants: files by path relative to the root, nil to
// delete one. The bytes must not be changed afterwards.
type Change struct {
	Files   map[string][]byte
	Message string
	Author  Signature
}

// A request waits, is withdrawn by its caller, or is taken by the owner.
const (
	requestWaits = iota
	requestWithdrawn
	requestTaken
)

// request is one edit; without apply it asks to look for other writers.
type request struct {
	apply func(Reader) (*Change, error)
	dir   string // where most of its files stand; a hint
	state atomic.Int32
	hash  Hash
	err   error
	done  chan struct{} // closed when hash and err are set

	broken bool // its edit failed half way, and is left out
}

// ownerState belongs to the owner goroutine.
type ownerState struct {
	work     *worktree
	builder  *odb.Builder
	group    []*request
	lastSize int    // of the group before
	scratch  []byte // for commits
	patience *time.Timer
	moves    []move // not in the reflog yet

	move *Advance // of the group, not handed to the herald yet

	lastEdits int  // of the group before, see readAhead
	aheadRoot Hash // by which readAhead goes
	aheadLeft int  // edits until it takes a newer one

	ref, oldRef disk.File // see refLock.release
}

func (o *ownerState) init() {
	o.builder = odb.NewBuilder()
	o.patience = time.NewTimer(gatherTime)
	o.patience.Stop()
}

// run is the owner goroutine: it alone changes the branch.
func (s *Store) run() {
	defer s.writeMoves()
	if s.follower != nil {
		defer s.follower.finish()
	}
	defer s.herald.end()
	for {
		select {
		case r := <-s.requests:
			s.collect(r)
			s.handleGroup()
		case <-s.stop:
			s.drain()
			return
		}
	}
}

// drain handles what was handed over before Close; nothing is added any more.
func (s *Store) drain() {
	for {
		select {
		case r := <-s.requests:
			s.collect(r)
			s.handleGroup()
		default:
			return
		}
	}
}

// gatherTime bounds the wait for the callers just answered to come again.
const gatherTime = 300 * time.Microsecond

// collect makes a group of first and what else waits. After a group of several
// the callers just answered are about to hand in their next edits: without a
// moment's patience the first of them would make a group of its own, and every
// second group would be of one. A lone caller is never delayed.
func (s *Store) collect(first *request) {
	g := s.take(s.own.group[:0], first)
	expected := s.own.lastSize
	if expected < 2 {
		expected = 0
	}
	s.own.patience.Reset(gatherTime)
	defer s.own.patience.Stop()
	for len(g) < maxGroup {
		select {
		case r := <-s.requests:
			g = s.take(g, r)
			continue
		case <-s.own.patience.C:
			expected = 0
			continue // what waits already is taken all the same
		default:
		}
		if len(g) >= expected {
			break
		}
		runtime.Gosched()
	}
	s.own.lastSize = len(g)
	s.own.group = s.hold(g)
}

// A group costs about the same whatever its size up to some tens: its syncs, its
// files made and removed. While nobody waits for it, it is held until it has
// heldSize edits, or for holdTime.
const (
	heldSize = 64
	holdTime = 20 * time.Millisecond
)

// hold waits for more edits as long as the store's user is patient, which may change
// with every edit that comes.
func (s *Store) hold(g []*request) []*request {
	if s.opts.Patient == nil || len(g) == 0 || len(g) >= heldSize || !s.opts.Patient() {
		return g
	}
	s.own.patience.Reset(holdTime)
	for len(g) < heldSize && s.opts.Patient() {
		select {
		case r := <-s.requests:
			g = s.take(g, r)
		case <-s.own.patience.C:
			return g
		case <-s.stop:
			return g
		}
	}
	return g
}

func (s *Store) take(g []*request, r *request) []*request {
	if r.state.CompareAndSwap(requestWaits, requestTaken) {
		return append(g, r)
	}
	return g
}

// handleGroup commits the group and has its callers answered.
func (s *Store) handleGroup() {
	for rest := s.own.group; len(rest) > 0; {
		n := s.commitGroup(rest)
		s.herald.hand(s.own.move, rest[:n])
		s.own.move = nil
		rest = rest[n:]
	}
	clear(s.own.group)
}
