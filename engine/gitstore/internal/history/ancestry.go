package history

import (
	"container/heap"
	"errors"
	"path/filepath"
	"slices"
	"sync"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
)

// Ancestry tells what two commits have in common. It remembers the newest ancestors of the commit that it was asked
// for last, the top, so that a question about a later one costs the commits since, not the history down to what they
// have in common.
//
// Each commit has an age, a number greater than those of its ancestors, as Git has it in the commit-graph: its date, or
// one more than the greatest of its parents' ages. Commits are gone through by age, so that none is met before all that
// lead to it, whatever the clocks said.
type Ancestry struct {
	repo *repo.Repo

	mu      sync.Mutex // guards the rest
	graph   *odb.Graph // open while a question is answered
	commits map[odb.Hash]*aged
	tops    map[odb.Hash]int // which commit was the how-manieth top
	top     odb.Hash
	edge    newestFirst[*aged] // ancestors of the top whose parents were not looked at
	tired   int                // how many questions are not tried, after one that was too much
}

// aged is a commit that was met.
type aged struct {
	hash    odb.Hash
	parents []odb.Hash
	age     int64
	since   int // the first top that it is an ancestor of; 0: none that is known
}

func (c *aged) newer(d *aged) bool { return c.age > d.age }

const (
	mostAged = 200_000 // commits remembered, some 200 bytes each
	mostNear = 4000    // commits that a first question may read before their ages are asked for: a tenth of a second
	restsFor = 100     // questions
)

// ErrFar says that what two commits have in common lies too far back, or cannot be read here: the git program knows.
var ErrFar = errors.New("what the commits have in common is far back")

// NewAncestry gives the ancestry of a repository's commits.
func NewAncestry(r *repo.Repo) *Ancestry { return &Ancestry{repo: r} }

// Base gives what both commits began from: of several commits that no other leads to, the first by name; zero: the
// histories are unrelated.
func (y *Ancestry) Base(a, b odb.Hash) (base odb.Hash, err error) {
	if a == b {
		return a, nil
	}
	err = y.asked(func() error {
		if base = y.near(a, b); !base.IsZero() {
			return nil
		}
		ours, theirs := a, b
		isTop, err := y.raise(a)
		if err == nil && !isTop {
			if isTop, err = y.raise(b); isTop {
				ours, theirs = b, a
			}
		}
		if err == nil && !isTop {
			err = y.begin(a)
		}
		if err != nil {
			return err
		}
		_, met, err := y.beyond(theirs, y.tops[ours])
		if err != nil || len(met) == 0 {
			return err
		}
		if met, err = y.last(met); err != nil {
			return err
		}
		base = slices.MinFunc(met, func(a, b *aged) int { return slices.Compare(a.hash[:], b.hash[:]) }).hash
		return nil
	})
	return base, err
}

// near gives the one of two commits that leads to the other, where few are between; zero: it is not known. Ages that are
// in no commit-graph cost a look at the whole history, and a process that finds nothing new asks once.
func (y *Ancestry) near(a, b odb.Hash) odb.Hash {
	if !y.top.IsZero() {
		return odb.Hash{}
	}
	r, err := relate(y.repo.DB, a, b, mostNear)
	switch {
	case err == nil && r.Ahead:
		return a
	case err == nil && r.Behind:
		return b
	}
	return odb.Hash{}
}

// Beyond gives the commits that lead to tip and not to since, parents first.
func (y *Ancestry) Beyond(tip, since odb.Hash) (all []odb.Hash, err error) {
	err = y.asked(func() error {
		isTop, err := y.raise(since)
		if err == nil && !isTop {
			err = y.begin(since)
		}
		if err != nil {
			return err
		}
		found, _, err := y.beyond(tip, y.tops[since])
		for _, c := range slices.Backward(found) {
			all = append(all, c.hash)
		}
		return err
	})
	return all, err
}

// asked lets f answer a question. What f could not read, or is too much, is forgotten.
func (y *Ancestry) asked(f func() error) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.tired > 0 {
		y.tired--
		return ErrFar
	}
	if y.commits == nil || len(y.commits) > mostAged/2 {
		y.forget()
	}
	y.graph = odb.OpenGraph(filepath.Join(y.repo.Git, "objects"))
	defer y.graph.Close()
	err := f()
	if err == nil {
		return nil
	}
	if y.forget(); errors.Is(err, ErrFar) {
		y.tired = restsFor
	}
	return errors.Join(ErrFar, err)
}

func (y *Ancestry) forget() {
	y.commits, y.tops, y.top, y.edge = map[odb.Hash]*aged{}, map[odb.Hash]int{}, odb.Hash{}, nil
}

// begin makes a commit the only top.
func (y *Ancestry) begin(top odb.Hash) error {
	for _, c := range y.commits {
		c.since = 0
	}
	c, err := y.commit(top)
	if err != nil {
		return err
	}
	c.since = 1
	y.tops, y.top, y.edge = map[odb.Hash]int{top: 1}, top, newestFirst[*aged]{c}
	return nil
}

// raise makes a commit the top to which the top so far leads, and reports whether it is or was one.
func (y *Ancestry) raise(h odb.Hash) (bool, error) {
	if _, is := y.tops[h]; is || y.top.IsZero() {
		return is, nil
	}
	found, met, err := y.beyond(h, len(y.tops))
	if err != nil || !slices.ContainsFunc(met, func(c *aged) bool { return c.hash == y.top }) {
		return false, err
	}
	y.top, y.tops[h] = h, len(y.tops)+1
	for _, c := range found {
		c.since = len(y.tops)
	}
	return true, nil
}

// beyond gives the commits that lead to one and not to the top of a number, the newest first, and those ancestors of that top
// which they begin from.
func (y *Ancestry) beyond(h odb.Hash, top int) (found, met []*aged, err error) {
	c, err := y.commit(h)
	if err != nil {
		return nil, nil, err
	}
	queue, seen := newestFirst[*aged]{c}, map[odb.Hash]bool{h: true}
	for queue.Len() > 0 {
		c := heap.Pop(&queue).(*aged)
		if err := y.deepen(c.age); err != nil {
			return nil, nil, err
		}
		if c.since != 0 && c.since <= top {
			met = append(met, c)
			continue
		}
		found = append(found, c)
		for _, p := range c.parents {
			if seen[p] {
				continue
			}
			seen[p] = true
			parent, err := y.commit(p)
			if err != nil {
				return nil, nil, err
			}
			heap.Push(&queue, parent)
		}
	}
	return found, met, nil
}

// deepen makes known all ancestors of an age and above.
func (y *Ancestry) deepen(age int64) error {
	for y.edge.Len() > 0 && y.edge[0].age >= age {
		c := heap.Pop(&y.edge).(*aged)
		for _, p := range c.parents {
			parent, err := y.commit(p)
			if err != nil {
				return err
			}
			if parent.since == 0 {
				heap.Push(&y.edge, parent)
				parent.since = c.since
			}
			parent.since = min(parent.since, c.since)
		}
	}
	return nil
}

// last gives those of some commits that lead to no other of them.
func (y *Ancestry) last(of []*aged) (last []*aged, err error) {
	if len(of) == 1 {
		return of, nil
	}
	oldest := slices.MinFunc(of, func(a, b *aged) int { return int(min(max(a.age-b.age, -1), 1)) }).age
	led := map[*aged]bool{} // others lead from them
	queue := newestFirst[*aged](slices.Clone(of))
	heap.Init(&queue)
	for queue.Len() > 0 {
		c := heap.Pop(&queue).(*aged)
		for _, p := range c.parents {
			parent, err := y.commit(p)
			if err != nil {
				return nil, err
			}
			if !led[parent] && parent.age >= oldest {
				led[parent] = true
				heap.Push(&queue, parent)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(of), func(c *aged) bool { return led[c] }), nil
}

// commit reads a commit, and what of its ancestors its age needs.
func (y *Ancestry) commit(h odb.Hash) (*aged, error) {
	if c := y.commits[h]; c != nil {
		return c, nil
	}
	waiting := []odb.Hash{h}
	read := map[odb.Hash]odb.Commit{}
	for len(waiting) > 0 {
		h := waiting[len(waiting)-1]
		if y.commits[h] != nil {
			waiting = waiting[:len(waiting)-1]
			continue
		}
		if len(y.commits)+len(read) > mostAged {
			return nil, ErrFar
		}
		if c := y.inGraph(h); c != nil {
			y.commits[h] = c
			continue
		}
		c, is := read[h]
		if !is {
			var err error
			if c, err = y.repo.DB.ReadCommit(h); err != nil {
				return nil, err
			}
			read[h] = c
		}
		age, ready := c.Committer.When.Unix(), true
		for _, p := range c.Parents {
			if parent := y.commits[p]; parent != nil {
				age = max(age, parent.age+1)
			} else {
				waiting, ready = append(waiting, p), false
			}
		}
		if ready {
			y.commits[h] = &aged{hash: h, parents: c.Parents, age: age}
			delete(read, h)
		}
	}
	return y.commits[h], nil
}

// inGraph gives a commit as the commit-graph has it; nil: it does not, or not its age.
func (y *Ancestry) inGraph(h odb.Hash) *aged {
	pos, is := y.graph.Find(h)
	if !is {
		return nil
	}
	_, age := y.graph.Ages(pos)
	_, places, ok := y.graph.Commit(pos, nil)
	if age == 0 || !ok {
		return nil
	}
	c := &aged{hash: h, age: age}
	for _, p := range places {
		parent, _, ok := y.graph.Commit(p, nil)
		if !ok {
			return nil
		}
		c.parents = append(c.parents, parent.Hash)
	}
	return c
}
