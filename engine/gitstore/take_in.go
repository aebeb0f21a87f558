package gitstore

import (
	"errors"
	"fmt"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore/internal/history"
	"bagpipe/engine/gitstore/internal/ref"
	"bagpipe/engine/gitstore/internal/trees"
	"bagpipe/layout"
)

// settle brings the store in line with the branch: other writers' commits are taken in,
// a branch moved back is moved forward again.
func (o *owner) settle(lock *ref.Lock) error {
	now, err := ref.Read(o.repo)
	if err != nil {
		return err
	}
	known, published := *o.known.tip.Load(), ref.ReadPublished(o.repo)
	if now == known && (now == published || published.IsZero()) {
		return nil
	}
	for _, last := range []Hash{published, known} {
		if now, err = o.compare(lock, last, now); err != nil {
			return err
		}
	}
	if now.IsZero() && known.IsZero() {
		return nil
	}
	if now != known {
		if err := o.takeIn(known, now); err != nil {
			return err
		}
	}
	if now != published {
		if err := ref.WritePublished(o.repo, now); err != nil {
			o.repo.Log.Warn("remember publication", "error", err)
		}
	}
	return nil
}

// compare checks that the branch, at now, holds the commit last, and gives where
// it is in the end.
func (o *owner) compare(lock *ref.Lock, last, now Hash) (Hash, error) {
	if last.IsZero() || last == now {
		return now, nil
	}
	if ok, err := o.repo.DB.Has(last); err != nil || !ok {
		o.repo.Log.Warn("the commit published last is not in this repository", "commit", last.String())
		return now, err
	}
	rel := history.Relation{Behind: true}
	if !now.IsZero() {
		var err error
		if rel, err = history.Relate(o.repo.DB, last, now); err != nil {
			return now, err
		}
	}
	switch {
	case rel.Ahead:
		return now, nil
	case rel.Behind:
		return last, o.moveForward(lock, now, last)
	}
	return now, &DivergedError{Branch: o.repo.Branch, Tip: now, Last: last, Missing: rel.Missing, MissingAll: rel.MissingAll}
}

// moveForward undoes a move back to an ancestor.
func (o *owner) moveForward(lock *ref.Lock, from, to Hash) error {
	held := lock.Held()
	if err := lock.Write(to); err != nil {
		return err
	}
	if _, err := lock.Move(from); err != nil {
		return err
	}
	o.reflog.Write(from, to, o.opts.Now(), "moved forward again")
	o.tellMoved(from, to)
	return lock.Renew(held)
}

func (o *owner) tellMoved(from, to Hash) {
	if o.opts.Moved != nil {
		o.opts.Moved(from, to)
		return
	}
	o.repo.Log.Warn("the branch was moved back, and has been moved forward again",
		"branch", o.repo.Branch, "from", from.String(), "to", to.String())
}

// takeIn tells of another writer's commits, and forgets the tree in memory.
func (o *owner) takeIn(from, to Hash) error {
	o.work = nil
	if from.IsZero() { // at Open there is nothing to compare with
		o.known.tip.Store(&to)
		return nil
	}
	if err := o.tellForeign(from, to); err != nil {
		return fmt.Errorf("take in %s: %w", to, err)
	}
	o.known.tip.Store(&to)
	return nil
}

// maxTold bounds the changes of one call of Advanced.
const maxTold = 4096

func (o *owner) tellForeign(from, to Hash) (err error) {
	o.announcer.settled()
	var told []FileChange
	bulk := o.repo.DB.Bulk()
	defer func() { err = errors.Join(err, bulk.Close()) }()
	read := bulk.Scan(nil)
	err = trees.DiffCommits(read, from, to, func(path string, blob Hash) error {
		c, err := readChange(read, path, blob)
		if err != nil {
			return err
		}
		c.Foreign = true
		if told = append(told, c); len(told) == maxTold {
			o.announcer.advance(Advance{From: from, To: to, Changes: told, More: true})
			told = nil
		}
		return nil
	})
	if err != nil {
		return err
	}
	o.announcer.advance(Advance{From: from, To: to, Changes: told})
	return nil
}

// findTip is settle at Open: it fails when there is no branch.
func (o *owner) findTip() (err error) {
	// As published last: nothing to settle, and nobody to wait for.
	if now, err := ref.Read(o.repo); err == nil && !now.IsZero() && now == ref.ReadPublished(o.repo) {
		o.known.tip.Store(&now)
		return nil
	}
	turn, err := o.repo.TakeTurn()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.Release()) }()
	now, err := ref.Read(o.repo)
	if err != nil {
		return err
	}
	published := ref.ReadPublished(o.repo)
	if now == published && !now.IsZero() {
		o.known.tip.Store(&now)
		return nil
	}
	lock, err := o.locker.Prepare()
	if err != nil {
		return err
	}
	defer lock.Release()
	return o.settle(lock)
}

// DivergedError says that the branch was rewritten: commits that were
// acknowledged are no longer reachable from it.
type DivergedError struct {
	Branch     string
	Tip, Last  Hash   // where the branch is; where it was last
	Missing    []Hash // the newest of the commits that are missing from it
	MissingAll int    // how many there are
}

func (e *DivergedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s was rewritten: it is at %s, and lacks %s up to %s (", e.Branch, e.Tip, layout.Count(e.MissingAll, "commit"), e.Last)
	for i, h := range e.Missing {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(h.String()[:12])
	}
	if len(e.Missing) < e.MissingAll {
		b.WriteString(", …")
	}
	b.WriteString(")")
	return b.String()
}

// FaultKind is always fault.Damaged.
func (e *DivergedError) FaultKind() fault.Kind { return fault.Damaged }

// FaultRemedies has the branch brought back, and its present tip kept beside.
func (e *DivergedError) FaultRemedies() []fault.Remedy {
	return []fault.Remedy{{Verb: fault.RestoreBranch, Name: e.Branch, From: e.Tip.String(), To: e.Last.String()}}
}
