package gitstore

import (
	"errors"
	"fmt"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/ref"
	"bagpipe/engine/gitstore/internal/worktree"
)

// A group goes through these steps, under the turn lock of Bagpipe's processes:
//
//	settle   the branch is read; other writers' commits are taken in (take_in.go)
//	build    every edit is applied to the tree and becomes a commit of the pack
//	publish  pack and index synced, then the branch moved (publish.go)
//	settle…  from the start when another writer was quicker
//	answer   the new tip is remembered; the announcer calls Advanced and answers the
//	         callers, beside the next group
const (
	maxRounds     = 50       // of a group that other writers forestall
	holdAfter     = 2        // refusals after which the branch is locked before building
	maxGroupBytes = 64 << 20 // of objects in one group
)

// commitGroup commits as many of the requests as fit one group, answers each in its
// fields, and tells how many it answered.
func (o *owner) commitGroup(reqs []*request) int {
	n, err := o.tryGroup(reqs)
	if err == nil {
		return n
	}
	o.work = nil // it may hold edits that were not published
	for _, r := range reqs[:n] {
		r.hash, r.err = Hash{}, err
	}
	return n
}

func (o *owner) tryGroup(reqs []*request) (n int, err error) {
	if o.unsure != nil {
		return len(reqs), o.unsure
	}
	turn, err := o.repo.TakeTurn()
	if err != nil {
		return len(reqs), err
	}
	defer func() { err = errors.Join(err, turn.Release()) }()
	for round := range maxRounds {
		n, err = o.tryRound(reqs, round >= holdAfter)
		if !errors.Is(err, ref.ErrMoved) {
			return n, err
		}
		o.work = nil
	}
	return len(reqs), fmt.Errorf("commit to %s: other writers moved the branch %d times", o.repo.Branch, maxRounds)
}

// tryRound builds the group once and publishes it. With hold it locks the branch first, so
// that others cannot forestall it again.
func (o *owner) tryRound(reqs []*request, hold bool) (int, error) {
	lock, err := o.locker.Prepare()
	if err != nil {
		return len(reqs), err
	}
	defer lock.Release()
	if hold {
		if err := lock.Take(); err != nil {
			return len(reqs), err
		}
	}
	if err := o.settle(lock); err != nil {
		return len(reqs), err
	}
	begin := o.opts.Now()
	b, n, err := o.build(reqs)
	if err == nil {
		err = o.seal(b, o.opts.Sign != nil)
	}
	if err != nil || b.To == b.From {
		return n, err
	}
	made := o.opts.Now()
	if err := o.publish(b, lock); err != nil {
		return n, err
	}
	o.known.figures.add(len(b.entries), Took{Building: made.Sub(begin), Packing: b.packed.Sub(made), Syncing: b.synced.Sub(b.packed), Moving: o.opts.Now().Sub(b.synced)})
	o.remember(b)
	return n, nil
}

// built is a group ready to be published.
type built struct {
	ref.Move
	changes []FileChange
	entries []odb.GraphEntry

	packed, synced time.Time // when its pack was written, and was durable
}

// build applies the requests one after the other. A request whose edit is refused gets its
// error and adds no commit.
func (o *owner) build(reqs []*request) (*built, int, error) {
	if err := o.readWork(); err != nil {
		return nil, len(reqs), err
	}
	tip := *o.known.tip.Load()
	b := &built{Move: ref.Move{From: tip, To: tip}}
	o.builder.Reset()
	o.last = nil
	o.work.BeginGroup()
	ahead := o.readAhead(reqs)
	defer ahead.wait()
	for i, r := range reqs {
		ahead.reached(i)
		if o.builder.Size() > maxGroupBytes {
			return b, i, nil
		}
		if r.apply != nil && (r.err == nil || !r.broken) {
			r.hash, r.err = Hash{}, nil
			if err := o.buildOne(b, r); err != nil {
				return nil, len(reqs), err
			}
		}
		r.changes = len(b.changes)
	}
	return b, len(reqs), nil
}

// buildOne gives an error only when the group must be begun again.
func (o *owner) buildOne(b *built, r *request) error {
	c, err := r.apply(o.work)
	if err != nil {
		r.err = err
		return nil
	}
	if err := o.seal(b, o.opts.SignAll && o.opts.Sign != nil); err != nil {
		return err
	}
	if c == nil {
		r.hash = b.To
		return nil
	}
	for range maxWays {
		clean, err := o.edit(b, r, c)
		path, at := worktree.InTheWay(err)
		r.err, r.broken = err, !clean
		if !clean || at == "" || o.opts.MakeWay == nil {
			break
		}
		var way Change
		way.Author, way.Message = o.opts.MakeWay(path, at)
		if way.Files, err = o.work.Below(at); err == nil {
			_, err = o.edit(b, r, &way)
		}
		if err == nil {
			err = o.seal(b, o.opts.SignAll && o.opts.Sign != nil)
		}
		if err != nil {
			return err
		}
	}
	if r.broken {
		return ref.ErrMoved // the trees in memory are half changed: begin again without it
	}
	if r.err != nil || r.alone {
		return nil
	}
	return o.buildNext(b, r, c.Next)
}

// buildNext makes the commits that follow on the one of a request. It gives an error only when
// the group must be begun again.
func (o *owner) buildNext(b *built, r *request, next func(Reader) (*Change, error)) error {
	for next != nil {
		if err := o.seal(b, o.opts.SignAll && o.opts.Sign != nil); err != nil {
			return err
		}
		c, err := next(o.work)
		if err != nil || c == nil {
			return nil
		}
		clean, err := o.edit(b, r, c)
		if r.alone = !clean; r.alone {
			return ref.ErrMoved
		}
		if err != nil {
			return nil
		}
		next = c.Next
	}
	return nil
}

// maxWays bounds the files and folders that are removed from the way of one Change.
const maxWays = 100

// edit makes the commit of a change. After an error, clean reports whether nothing was changed.
func (o *owner) edit(b *built, r *request, c *Change) (clean bool, err error) {
	changed, clean, err := o.work.Edit(o.builder, c.Files)
	if err != nil {
		return clean, err
	}
	o.addCommit(b, r, c, changed)
	for _, p := range changed {
		data := c.Files[p]
		b.changes = append(b.changes, FileChange{Path: p, Data: data, Deleted: data == nil})
	}
	return true, nil
}

// addCommit makes a commit, which seal adds.
func (o *owner) addCommit(b *built, r *request, c *Change, changed []string) {
	now := o.opts.Now()
	committer := o.opts.Committer.At(now)
	author := committer
	if c.Author != (Signature{}) {
		author = c.Author.At(now)
	}
	var parents []Hash
	if !b.To.IsZero() {
		parents = []Hash{b.To}
	}
	tree := o.work.RootHash(o.builder)
	o.scratch = odb.AppendCommit(o.scratch[:0], tree, parents, author, committer, c.Message+o.opts.Trailer)
	o.last = &unsealed{r, odb.GraphEntry{Tree: tree, Parent: b.To, When: now.Unix(), Filter: odb.NewFilter(changed)}}
	b.Commits++
	b.Subject = c.Message
	if c.Made != nil {
		c.Made()
	}
}

// seal adds the last commit to the group, signed or not, and answers its request with its name.
func (o *owner) seal(b *built, sign bool) error {
	last := o.last
	if last == nil {
		return nil
	}
	o.last = nil
	if sign {
		armored, err := o.opts.Sign(o.scratch)
		if err != nil {
			return fmt.Errorf("sign a commit: %w", err)
		}
		o.scratch = odb.WithSignature(o.scratch, armored)
	}
	b.To = o.builder.AddCommit(o.scratch)
	last.of.hash, last.entry.Hash = b.To, b.To
	b.entries = append(b.entries, last.entry)
	return nil
}

// readWork reads the tree of the tip, unless it is in memory.
func (o *owner) readWork() error {
	if o.work != nil {
		return nil
	}
	var root Hash
	if tip := *o.known.tip.Load(); !tip.IsZero() {
		c, err := o.repo.DB.ReadCommit(tip)
		if err != nil {
			return err
		}
		root = c.Tree
	}
	w, err := worktree.New(o.repo.DB, root)
	if err == nil {
		o.work = w
	}
	return err
}

// remember takes the new tip, and keeps the move for the announcer.
func (o *owner) remember(b *built) {
	o.own.Add(b.entries) // before the tip: all commits up to it are there
	o.known.tip.Store(&b.To)
	o.known.view.Store(o.known.next.Swap(nil))
	o.work.KeepWritten()
	for _, blob := range o.builder.Blobs() { // the next edit of the item reads them
		o.repo.DB.Keep(blob.Name, odb.TypeBlob, blob.Data)
	}
	o.move = &Advance{From: b.From, To: b.To, Changes: b.changes}
}
