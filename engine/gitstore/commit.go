package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"bagpipe/engine/gitstore/internal/ref"
	"bagpipe/engine/gitstore/internal/worktree"
)

// Reader reads committed files as they are when an edit is applied.
type Reader interface {
	// ReadFile gives a file's bytes, which must not be changed; fs.ErrNotExist
	// when there is none.
	ReadFile(path string) ([]byte, error)
}

// Change is the result of an edit: files by path relative to the root, nil to delete one.
// The bytes must not be changed afterwards.
type Change struct {
	Files   map[string][]byte
	Message string
	Author  Signature
	// Next makes the commit that follows this one in its group, of the same request; nil: there
	// is none. It is called as apply is. Its refusal, or a nil Change, ends the request's commits
	// and takes nothing from those before. A clone has none.
	Next func(Reader) (*Change, error)
	// Made is called when the commit is in the group, which may be begun again; nil: nobody asks.
	// It stands once the request is answered without an error.
	Made func()
}

// ErrClosed answers calls after Close.
var ErrClosed = fmt.Errorf("git store: %w", fs.ErrClosed)

// ErrReadOnly answers Commit of a store that was opened to be read only.
var ErrReadOnly = errors.New("the workspace is open for reading only")

// IsPath reports whether an error refuses a path of a Change, and not the writing.
func IsPath(err error) bool { return worktree.IsPath(err) }

// IsName reports whether a file or folder of a Change may have a name.
func IsName(name string) bool { return worktree.IsName(name) }

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

	changes int // of its group, up to its own

	broken bool // its edit failed half way, and is left out
	alone  bool // what follows on it failed half way, and is left out
}

// Commit hands an edit to the owner goroutine, which applies it to the tree as it then is
// (with the earlier edits of its group), chains its commit, packs, syncs, moves the branch,
// and only then answers: the commit is durable and plain git log shows it.
//
// apply may be called again when another writer moved the branch; it must be pure and
// quick, and is called on the owner goroutine. Its error is returned as it is, and no
// commit is written. A nil Change asks for no commit, and is answered with the tip. A
// Change without files is a commit of the same tree.
//
// The answer names the last commit that was made of the edit and what follows on it.
//
// When ctx ends before the edit's group began, no commit was written and ctx's error is
// returned; after that the group's end is awaited.
func (s *Store) Commit(ctx context.Context, apply func(Reader) (*Change, error)) (Hash, error) {
	return s.CommitTo(ctx, "", apply)
}

// CommitTo is Commit of a change to files that mostly stand in one folder, which the owner
// may read ahead.
func (s *Store) CommitTo(ctx context.Context, dir string, apply func(Reader) (*Change, error)) (Hash, error) {
	if s.opts.Clone {
		return s.commitInClone(ctx, apply)
	}
	r := &request{apply: apply, dir: dir, done: make(chan struct{})}
	if err := s.send(ctx, r); err != nil {
		return Hash{}, err
	}
	return r.hash, r.err
}

// Refresh looks whether another writer moved the branch; if so, Advanced is called with
// the changes before Refresh returns.
func (s *Store) Refresh(ctx context.Context) error {
	now, err := ref.Read(s.repo)
	if s.opts.ReadOnly || err == nil && now == *s.known.tip.Load() {
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
	case s.owner.gather.requests <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
