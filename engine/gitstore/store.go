package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Hash names a commit, a tree or a file's bytes in the repository.
type Hash = odb.Hash

// ParseHash reads 40 hexadecimal digits.
func ParseHash(s string) (Hash, error) { return odb.ParseHash(s) }

// Signature says who; the store adds the time from its clock.
type Signature struct{ Name, Email string }

// Options tell a store about its surroundings. Now is required.
type Options struct {
	FS        disk.FS          // nil: the operating system's
	Now       func() time.Time // the clock of every commit
	Committer Signature        // the engine; zero: "Bagpipe"
	Log       *slog.Logger     // nil: discard

	// ReadOnly opens without writing anything: nothing dead processes left is
	// cleared, followed files are left as they are, and Commit answers ErrReadOnly.
	ReadOnly bool

	// Advanced is called after the branch moved, with every file that changed, oldest
	// first; one call at a time, in the order of the moves: of this store's own group
	// before its callers are answered, of another writer before the next edit is
	// applied. It must be quick, and must not call the store back except for views.
	Advanced func(Advance)

	// Patient tells that nobody waits for what is handed in now, so that a small group
	// may be held for a moment until more share its sync. nil: groups are never held.
	Patient func() bool

	// Follow tells which committed paths are shown as files in the workspace.
	// nil: none.
	Follow func(path string) bool

	// Moved is told after the branch, found moved back to from, was moved forward
	// again to to: from Open's goroutine, or the owner's. nil: logged as a warning.
	Moved func(from, to Hash)

	// Edited is told, from the follower's goroutine, of a followed file that a
	// person edited in place, after it was kept beside as keptAs.
	Edited func(path, keptAs string)
}

// Advance is one move of the branch. A very large foreign one arrives in
// several calls with the same From and To: More is set in all but the last, and
// after an error between them the move is told from its beginning.
type Advance struct {
	From, To Hash
	Changes  []FileChange
	More     bool
}

// FileChange is one file that is not as it was. Data is shared: it must not be
// changed. Foreign: by another writer than this store.
type FileChange struct {
	Path    string
	Data    []byte
	Deleted bool
	Foreign bool
}

// Store is one repository and its branch. Its methods may be called by any
// goroutine.
type Store struct {
	root, git string // the workspace, and its repository
	branch    string // refs/heads/main
	fs        disk.FS
	opts      Options
	log       *slog.Logger
	db        *odb.DB

	requests chan *request
	stop     chan struct{} // closed by Close
	stopOnce sync.Once
	owner    sync.WaitGroup // the owner goroutine, the herald and the follower
	senders  sync.RWMutex   // held for reading while a request is handed over
	closed   bool           // guarded by senders
	closeErr error

	tip      atomic.Pointer[Hash] // where the owner knows the branch to be
	lastView atomic.Pointer[View] // at the commit published last
	follower *follower            // nil without Follow
	herald   *herald
	recent   recent

	graphChecked bool // all of the commit-graph was; touched by who has the turn to maintain

	own ownerState // touched by the owner goroutine alone

	compactFrom int64 // bytes of packs added that are worth packing all anew
}

// Open opens the store of the workspace root. It scans nothing; what dead
// processes left (half packs, locks) is cleared.
func Open(root string, o Options) (*Store, error) {
	s, err := newStore(root, o)
	if err != nil {
		return nil, fmt.Errorf("open store of %s: %w", root, err)
	}
	if err := s.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store of %s: %w", root, err), s.db.Close())
	}
	return s, nil
}

// newStore makes a store whose goroutines do not run yet.
func newStore(root string, o Options) (*Store, error) {
	if o.Now == nil {
		return nil, errors.New("no clock given")
	}
	if o.FS == nil {
		o.FS = disk.OS{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Committer == (Signature{}) {
		o.Committer = Signature{Name: "Bagpipe", Email: "bagpipe@localhost"}
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	s := &Store{
		root: root, git: filepath.Join(root, layout.RepositoryDir),
		fs: o.FS, opts: o, log: o.Log,
		requests: make(chan *request, maxPending),
		stop:     make(chan struct{}),

		compactFrom: 1 << 20,
	}
	if err := s.checkRepository(); err != nil {
		return nil, err
	}
	if s.db, err = odb.Open(filepath.Join(s.git, "objects"), s.readSlowly); err != nil {
		return nil, err
	}
	s.herald = newHerald(s)
	s.own.init()
	return s, nil
}

// begin clears up, finds the tip and starts the goroutines.
func (s *Store) begin() error {
	if s.opts.ReadOnly {
		tip, err := s.readRef()
		s.tip.Store(&tip)
		return err
	}
	if err := s.clearLeftovers(); err != nil {
		return err
	}
	if err := s.findTip(); err != nil {
		return err
	}
	if s.opts.Follow != nil {
		s.follower = newFollower(s)
		s.owner.Go(s.follower.run)
	}
	s.owner.Go(s.herald.run)
	s.owner.Go(s.run)
	return nil
}

// Close lets what was handed in be committed and the followed files be written,
// and stops. It may be called twice.
func (s *Store) Close() error {
	s.stopOnce.Do(func() {
		s.senders.Lock()
		s.closed = true
		s.senders.Unlock()
		close(s.stop)
		s.owner.Wait()
		s.closeErr = errors.Join(s.db.Close(), closeFile(s.own.oldRef), closeFile(s.own.ref))
	})
	return s.closeErr
}

// ErrClosed answers calls after Close.
var ErrClosed = fmt.Errorf("git store: %w", fs.ErrClosed)

// ErrReadOnly answers Commit of a store that was opened to be read only.
var ErrReadOnly = errors.New("the workspace is open for reading only")

// Commit hands an edit to the owner goroutine, which applies it to the tree as
// it then is (with the earlier edits of its group), chains its commit, packs,
// syncs, moves the branch, and only then answers: the commit is durable and
// plain git log shows it.
//
// apply may be called again when another writer moved the branch; it must be
// pure and quick, and is called on the owner goroutine. Its error is returned
// as it is and nothing is written. A nil Change is nothing to do, answered with
// the tip. A Change without files is a commit of the same tree.
//
// When ctx ends before the edit's group began, nothing was written and ctx's
// error is returned; after that the group's end is awaited.
func (s *Store) Commit(ctx context.Context, apply func(Reader) (*Change, error)) (Hash, error) {
	return s.CommitTo(ctx, "", apply)
}

// CommitTo is Commit of a change to files that mostly stand in one folder, which it
// may read ahead.
func (s *Store) CommitTo(ctx context.Context, dir string, apply func(Reader) (*Change, error)) (Hash, error) {
	r := &request{apply: apply, dir: dir, done: make(chan struct{})}
	if err := s.send(ctx, r); err != nil {
		return Hash{}, err
	}
	return r.hash, r.err
}

// Refresh looks whether another writer moved the branch; if so, Advanced is
// called with what changed before Refresh returns.
func (s *Store) Refresh(ctx context.Context) error {
	now, err := s.readRef()
	if s.opts.ReadOnly || err == nil && now == *s.tip.Load() {
		return err
	}
	r := &request{done: make(chan struct{})}
	if err := s.send(ctx, r); err != nil {
		return err
	}
	return r.err
}

// send hands a request over and waits for its answer.
func (s *Store) send(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enqueue(ctx, r); err != nil {
		return err
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
	}
	if r.state.CompareAndSwap(requestWaits, requestWithdrawn) {
		return ctx.Err()
	}
	<-r.done // its group is on the way: the answer is near, and true
	return nil
}

func (s *Store) enqueue(ctx context.Context, r *request) error {
	s.senders.RLock()
	defer s.senders.RUnlock()
	if s.closed {
		return ErrClosed
	}
	if s.opts.ReadOnly {
		return ErrReadOnly
	}
	select {
	case s.requests <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
