package gitstore

import (
	"errors"
	"fmt"

	"bagpipe/engine/gitstore/internal/odb"
)

// A group goes through these steps, under Bagpipe's own turn lock:
//
//	settle   the branch is read; what others did is taken in
//	build    every edit is applied to the tree and becomes a commit of the pack
//	publish  pack and index synced, then the branch moved (publish.go)
//	settle…  from the start when another writer was quicker
//	answer   the new tip is remembered; the herald calls Advanced and answers the
//	         callers, beside the next group

const (
	maxRounds = 50 // of a group that other writers forestall
	holdAfter = 2  // refusals after which the branch is locked before building
)

// commitGroup commits as many of the requests as fit one group, answers each in
// its fields, and tells how many it answered.
func (s *Store) commitGroup(reqs []*request) int {
	n, err := s.tryGroup(reqs)
	if err == nil {
		return n
	}
	s.own.work = nil // it may hold edits that were not published
	for _, r := range reqs[:n] {
		r.hash, r.err = Hash{}, err
	}
	return n
}

func (s *Store) tryGroup(reqs []*request) (n int, err error) {
	turn, err := s.takeTurn()
	if err != nil {
		return len(reqs), err
	}
	defer func() { err = errors.Join(err, turn.release()) }()
	for round := range maxRounds {
		n, err = s.tryRound(reqs, round >= holdAfter)
		if !errors.Is(err, errMoved) {
			return n, err
		}
		s.own.work = nil
	}
	return len(reqs), fmt.Errorf("commit to %s: other writers moved the branch %d times", s.branch, maxRounds)
}

// errMoved says that the branch is not where the group was built on.
var errMoved = errors.New("another writer moved the branch")

// tryRound builds the group once and publishes it. With hold it locks the
// branch first, so that others cannot forestall it again.
func (s *Store) tryRound(reqs []*request, hold bool) (int, error) {
	lock, err := s.prepareRefLock()
	if err != nil {
		return len(reqs), err
	}
	defer lock.release()
	if hold {
		if err := lock.take(); err != nil {
			return len(reqs), err
		}
	}
	if err := s.settle(lock); err != nil {
		return len(reqs), err
	}
	b, n, err := s.build(reqs)
	if err != nil {
		return n, err
	}
	if b.tip == b.base {
		return n, nil
	}
	if err := s.publish(b, lock); err != nil {
		return n, err
	}
	s.advanceOwn(b)
	return n, nil
}

// built is a group ready to be published.
type built struct {
	base, tip Hash
	commits   int
	subject   string // of the last commit
	changes   []FileChange
	entries   []odb.GraphEntry
}

// build applies the requests one after the other. A request whose edit is
// refused gets its error and adds nothing.
func (s *Store) build(reqs []*request) (*built, int, error) {
	if err := s.ensureWorktree(); err != nil {
		return nil, len(reqs), err
	}
	tip := *s.tip.Load()
	b := &built{base: tip, tip: tip}
	s.own.builder.Reset()
	s.own.work.beginGroup()
	ahead := s.readAhead(reqs, s.own.work.root.hash)
	defer ahead.wait()
	for i, r := range reqs {
		ahead.reached(i)
		if s.own.builder.Size() > maxGroupBytes {
			return b, i, nil
		}
		if r.apply == nil || r.err != nil && r.broken {
			continue
		}
		r.hash, r.err = Hash{}, nil
		if err := s.buildOne(b, r); err != nil {
			return nil, len(reqs), err
		}
	}
	return b, len(reqs), nil
}

// buildOne gives an error only when the group must be begun again.
func (s *Store) buildOne(b *built, r *request) error {
	c, err := r.apply(s.own.work)
	if err != nil {
		r.err = err
		return nil
	}
	if c == nil {
		r.hash = b.tip
		return nil
	}
	changed, clean, err := s.own.work.edit(s.own.builder, c.Files)
	if err != nil {
		r.err = err
		if clean {
			return nil
		}
		r.broken = true
		return errMoved // the trees in memory are half changed: begin again without it
	}
	r.hash = s.addCommit(b, c, changed)
	for _, p := range changed {
		data := c.Files[p]
		b.changes = append(b.changes, FileChange{Path: p, Data: data, Deleted: data == nil})
	}
	return nil
}

func (s *Store) addCommit(b *built, c *Change, changed []string) Hash {
	now := s.opts.Now()
	author := odb.Person{Name: c.Author.Name, Email: c.Author.Email, When: now}
	if c.Author == (Signature{}) {
		author.Name, author.Email = s.opts.Committer.Name, s.opts.Committer.Email
	}
	committer := odb.Person{Name: s.opts.Committer.Name, Email: s.opts.Committer.Email, When: now}
	var parents []Hash
	if !b.tip.IsZero() {
		parents = []Hash{b.tip}
	}
	tree := s.own.work.rootHash(s.own.builder)
	s.own.scratch = odb.AppendCommit(s.own.scratch[:0], tree, parents, author, committer, c.Message)
	parent := b.tip
	b.tip = s.own.builder.AddCommit(s.own.scratch)
	b.entries = append(b.entries, odb.GraphEntry{Hash: b.tip, Tree: tree, Parent: parent, When: now.Unix(), Filter: odb.NewFilter(changed)})
	b.commits++
	b.subject = c.Message
	return b.tip
}

// rootHash names the root tree; the very first one may be empty.
func (w *worktree) rootHash(b *odb.Builder) Hash {
	if w.root.hash.IsZero() {
		w.root.hash, w.root.placed = b.AddTree(w.root.raw, nil, odb.Placed{})
		w.root.in = w.group
	}
	return w.root.hash
}

func (s *Store) ensureWorktree() error {
	if s.own.work != nil {
		return nil
	}
	var root Hash
	if tip := *s.tip.Load(); !tip.IsZero() {
		c, err := s.readCommit(tip)
		if err != nil {
			return err
		}
		root = c.Tree
	}
	w, err := newWorktree(s.db, root)
	s.own.work = w
	return err
}

// advanceOwn remembers the new tip, and what the herald is to tell of it.
func (s *Store) advanceOwn(b *built) {
	s.recent.add(b.entries) // before the tip: all up to it is there
	s.tip.Store(&b.tip)
	s.lastView.Store(&View{s: s, commit: b.tip, tree: s.own.work.root.hash})
	for _, blob := range s.own.builder.Blobs() { // the next edit of the item reads them
		s.db.Keep(blob.Name, odb.TypeBlob, blob.Data)
	}
	s.own.move = &Advance{From: b.base, To: b.tip, Changes: b.changes}
}

func (s *Store) advance(a Advance) {
	if s.opts.Advanced != nil {
		s.opts.Advanced(a)
	}
	if s.follower != nil {
		s.follower.add(a)
	}
}

func (s *Store) readCommit(h Hash) (odb.Commit, error) {
	data, err := s.db.ReadAsUncached(h, odb.TypeCommit)
	if err != nil {
		return odb.Commit{}, fmt.Errorf("read commit %s: %w", h, err)
	}
	c, err := odb.ParseCommit(data)
	if err != nil {
		return odb.Commit{}, fmt.Errorf("read commit %s: %w", h, err)
	}
	return c, nil
}
