package gitstore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// publishedFile remembers where a Bagpipe process last moved the branch, or saw
// it moved by others. It tells a branch that was moved back from one that never
// was further. It is not synced: an older commit in it is only less telling.
const publishedFile = layout.StateDir + "/published"

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
	fmt.Fprintf(&b, "%s was rewritten: it is at %s, and %d commits up to %s are missing from it (", e.Branch, e.Tip, e.MissingAll, e.Last)
	for i, h := range e.Missing {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(h.String()[:12])
	}
	if len(e.Missing) < e.MissingAll {
		b.WriteString(", …")
	}
	fmt.Fprintf(&b, "); to bring them back, keeping what is there now as the branch rewritten: %s", e.Command())
	return b.String()
}

// Command is what brings the missing commits back.
func (e *DivergedError) Command() string {
	return fmt.Sprintf("git branch -f rewritten %s && git update-ref %s %s %s", e.Tip, e.Branch, e.Last, e.Tip)
}

const maxMissing = 10

// settle brings the store in line with the branch: what others did is taken in,
// a branch moved back is moved forward again.
func (s *Store) settle(lock *refLock) error {
	now, err := s.readRef()
	if err != nil {
		return err
	}
	known, published := *s.tip.Load(), s.readPublished()
	if now == known && (now == published || published.IsZero()) {
		return nil
	}
	for _, last := range []Hash{published, known} {
		if now, err = s.compare(lock, last, now); err != nil {
			return err
		}
	}
	if now.IsZero() && known.IsZero() {
		return nil
	}
	if now != known {
		if err := s.takeIn(known, now); err != nil {
			return err
		}
	}
	if now != published {
		s.rememberPublished(now)
	}
	return nil
}

// compare checks that the branch, at now, holds the commit last, and gives where
// it is in the end.
func (s *Store) compare(lock *refLock, last, now Hash) (Hash, error) {
	if last.IsZero() || last == now {
		return now, nil
	}
	if ok, err := s.db.Has(last); err != nil || !ok {
		s.log.Warn("the commit published last is not in this repository", "commit", last.String())
		return now, err
	}
	rel := relation{behind: true}
	if !now.IsZero() {
		var err error
		if rel, err = s.relate(last, now); err != nil {
			return now, err
		}
	}
	switch {
	case rel.ahead:
		return now, nil
	case rel.behind:
		return last, s.moveForward(lock, now, last)
	}
	return now, &DivergedError{Branch: s.branch, Tip: now, Last: last, Missing: rel.missing, MissingAll: rel.missingAll}
}

// moveForward undoes a move back to an ancestor.
func (s *Store) moveForward(lock *refLock, from, to Hash) error {
	wasTaken := lock.taken
	if err := lock.write(to); err != nil {
		return err
	}
	if _, err := lock.move(from); err != nil {
		return err
	}
	s.writeReflog(from, to, s.opts.Now(), "bagpipe: moved forward again")
	s.tellMoved(from, to)
	if err := lock.renew(); err != nil {
		return err
	}
	if wasTaken {
		return lock.take()
	}
	return nil
}

func (s *Store) tellMoved(from, to Hash) {
	if s.opts.Moved != nil {
		s.opts.Moved(from, to)
		return
	}
	s.log.Warn("the branch was moved back, and has been moved forward again",
		"branch", s.branch, "from", from.String(), "to", to.String())
}

// renew makes a new file for the next move.
func (l *refLock) renew() error {
	l.release()
	next, err := l.s.prepareRefLock()
	if err != nil {
		return err
	}
	*l = *next
	return nil
}

// takeIn tells of what another writer did, and forgets the tree in memory.
func (s *Store) takeIn(from, to Hash) error {
	s.own.work = nil
	if from.IsZero() { // at Open there is nothing to compare with
		s.tip.Store(&to)
		return nil
	}
	if err := s.tellForeign(from, to); err != nil {
		return fmt.Errorf("take in %s: %w", to, err)
	}
	s.tip.Store(&to)
	return nil
}

// maxTold bounds the changes of one call of Advanced.
const maxTold = 4096

func (s *Store) tellForeign(from, to Hash) error {
	s.herald.settled()
	var told []FileChange
	err := s.diffCommits(from, to, func(c FileChange) error {
		c.Foreign = true
		if told = append(told, c); len(told) == maxTold {
			s.advance(Advance{From: from, To: to, Changes: told, More: true})
			told = nil
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.advance(Advance{From: from, To: to, Changes: told})
	return nil
}

// findTip is settle at Open: it fails when there is no branch.
func (s *Store) findTip() (err error) {
	s.tip.Store(&Hash{})
	// As published last: nothing to settle, and nobody to wait for.
	if now, err := s.readRef(); err == nil && !now.IsZero() && now == s.readPublished() {
		s.tip.Store(&now)
		return nil
	}
	turn, err := s.takeTurn()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.release()) }()
	now, err := s.readRef()
	if err != nil {
		return err
	}
	published := s.readPublished()
	if now == published && !now.IsZero() {
		s.tip.Store(&now)
		return nil
	}
	lock, err := s.prepareRefLock()
	if err != nil {
		return err
	}
	defer lock.release()
	return s.settle(lock)
}

func (s *Store) readPublished() Hash {
	data, err := s.fs.ReadFile(s.statePath(publishedFile))
	if err != nil || len(data) < 40 {
		return Hash{}
	}
	h, err := ParseHash(string(data[:40]))
	if err != nil {
		return Hash{}
	}
	return h
}

// rememberPublished overwrites the one line in place; a reader holds the turn
// lock, so it never sees half of it.
func (s *Store) rememberPublished(h Hash) {
	if err := s.writePublished(h); err != nil {
		s.log.Warn("remember publication", "error", err)
	}
}

func (s *Store) writePublished(h Hash) (err error) {
	f, err := s.openState(publishedFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.WriteAt([]byte(h.String()+"\n"), 0)
	return err
}

func (s *Store) openState(rel string) (disk.File, error) {
	const flags = os.O_CREATE | os.O_WRONLY
	f, err := s.fs.OpenFile(s.statePath(rel), flags, 0o644)
	if err == nil {
		return f, nil
	}
	if err := disk.MkdirAllFS(s.fs, s.statePath(layout.StateDir), 0o755); err != nil {
		return nil, err
	}
	return s.fs.OpenFile(s.statePath(rel), flags, 0o644)
}

func personNow(who Signature, now time.Time) odb.Person {
	return odb.Person{Name: who.Name, Email: who.Email, When: now}
}
