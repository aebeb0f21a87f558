package gitstore

import (
	"container/heap"
	"slices"
)

// relation says how the branch stands to a commit it once held.
type relation struct {
	ahead      bool   // the branch still holds the commit
	behind     bool   // the branch is at an ancestor of the commit
	missing    []Hash // neither: the newest commits the branch lost
	missingAll int
}

const (
	fromLast = 1 << iota // reachable from the commit
	fromNow              // reachable from the branch
)

// relate walks back from both commits, the newest first, until one is reached
// from the other, or all that is left is reached from both.
func (s *Store) relate(last, now Hash) (relation, error) {
	w := &painter{s: s, marks: map[Hash]*painted{}}
	for h, mark := range map[Hash]int{last: fromLast, now: fromNow} {
		if err := w.paint(h, mark); err != nil {
			return relation{}, err
		}
	}
	for w.open > 0 {
		p := heap.Pop(&w.queue).(*painted)
		p.queued = false
		if p.mark != fromLast|fromNow {
			w.open--
		}
		for _, parent := range p.parents {
			if err := w.paint(parent, p.mark); err != nil {
				return relation{}, err
			}
		}
		if w.marks[last].mark&fromNow != 0 {
			return relation{ahead: true}, nil
		}
		if w.marks[now].mark&fromLast != 0 {
			return relation{behind: true}, nil
		}
	}
	return w.missing(), nil
}

// painted is a commit that was reached.
type painted struct {
	hash    Hash
	when    int64
	parents []Hash
	mark    int
	queued  bool
}

// painter walks two histories at once. open counts the queued commits that are
// reached from one side only: when there are none, nothing can change any more.
type painter struct {
	s     *Store
	marks map[Hash]*painted
	queue byTime
	open  int
}

func (w *painter) paint(h Hash, mark int) error {
	p := w.marks[h]
	if p == nil {
		c, err := w.s.readCommit(h)
		if err != nil {
			return err
		}
		p = &painted{hash: h, when: c.Committer.When.Unix(), parents: c.Parents}
		w.marks[h] = p
	}
	if p.mark|mark == p.mark {
		return nil
	}
	before := p.mark
	p.mark |= mark
	switch {
	case !p.queued:
		p.queued = true
		heap.Push(&w.queue, p)
		if p.mark != fromLast|fromNow {
			w.open++
		}
	case before != fromLast|fromNow && p.mark == fromLast|fromNow:
		w.open--
	}
	return nil
}

// missing lists what is reached from the commit alone, the newest first.
func (w *painter) missing() relation {
	var r relation
	var lost []*painted
	for _, p := range w.marks {
		if p.mark == fromLast {
			lost = append(lost, p)
		}
	}
	slices.SortFunc(lost, func(a, b *painted) int {
		if a.when != b.when {
			return int(b.when - a.when)
		}
		return slices.Compare(a.hash[:], b.hash[:])
	})
	r.missingAll = len(lost)
	for _, p := range lost[:min(len(lost), maxMissing)] {
		r.missing = append(r.missing, p.hash)
	}
	return r
}

// byTime is a heap of commits, the newest on top.
type byTime []*painted

func (q byTime) Len() int           { return len(q) }
func (q byTime) Less(i, j int) bool { return q[i].when > q[j].when }
func (q byTime) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *byTime) Push(x any)        { *q = append(*q, x.(*painted)) }
func (q *byTime) Pop() any {
	old := *q
	p := old[len(old)-1]
	*q = old[:len(old)-1]
	return p
}
