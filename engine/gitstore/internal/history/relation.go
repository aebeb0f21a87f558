package history

import (
	"container/heap"
	"errors"
	"math"
	"slices"

	"bagpipe/engine/gitstore/internal/odb"
)

// MaxMissing bounds Relation.Missing.
const MaxMissing = 10

// Relation says how the branch stands to a commit that it once held.
type Relation struct {
	Ahead      bool       // the branch still holds the commit
	Behind     bool       // the branch is at an ancestor of the commit
	Missing    []odb.Hash // neither: the newest commits that the branch lost
	MissingAll int
}

const (
	fromLast = 1 << iota // reachable from the commit
	fromNow              // reachable from the branch
	fromBoth = fromLast | fromNow
)

// Relate walks back from the commit last and the branch now, the newest first, until one
// is reached from the other, or every commit that is left is reached from both.
func Relate(db *odb.DB, last, now odb.Hash) (Relation, error) {
	return relate(db, last, now, math.MaxInt)
}

// errMany says that more commits stand between two than were to be read.
var errMany = errors.New("many commits stand between")

// relate is Relate, which reads at most so many commits.
func relate(db *odb.DB, last, now odb.Hash, most int) (Relation, error) {
	p := &painter{db: db, commits: map[odb.Hash]*painted{}}
	for h, mark := range map[odb.Hash]int{last: fromLast, now: fromNow} {
		if err := p.paint(h, mark); err != nil {
			return Relation{}, err
		}
	}
	for p.open > 0 {
		if len(p.commits) > most {
			return Relation{}, errMany
		}
		c := heap.Pop(&p.queue).(*painted)
		c.queued = false
		if c.mark != fromBoth {
			p.open--
		}
		for _, parent := range c.parents {
			if err := p.paint(parent, c.mark); err != nil {
				return Relation{}, err
			}
		}
		if p.commits[last].mark&fromNow != 0 {
			return Relation{Ahead: true}, nil
		}
		if p.commits[now].mark&fromLast != 0 {
			return Relation{Behind: true}, nil
		}
	}
	return p.missing(), nil
}

// painted is a commit that was reached.
type painted struct {
	hash    odb.Hash
	when    int64
	parents []odb.Hash
	mark    int
	queued  bool
}

func (c *painted) newer(d *painted) bool { return c.when > d.when }

// painter walks two histories at once. open counts the queued commits that are reached
// from one side only: when there are none, no mark can change any more.
type painter struct {
	db      *odb.DB
	commits map[odb.Hash]*painted
	queue   newestFirst[*painted]
	open    int
}

func (p *painter) paint(h odb.Hash, mark int) error {
	c := p.commits[h]
	if c == nil {
		read, err := p.db.ReadCommit(h)
		if err != nil {
			return err
		}
		c = &painted{hash: h, when: read.Committer.When.Unix(), parents: read.Parents}
		p.commits[h] = c
	}
	if c.mark|mark == c.mark {
		return nil
	}
	before := c.mark
	c.mark |= mark
	switch {
	case !c.queued:
		c.queued = true
		heap.Push(&p.queue, c)
		if c.mark != fromBoth {
			p.open++
		}
	case before != fromBoth && c.mark == fromBoth:
		p.open--
	}
	return nil
}

// missing lists the commits that are reached from the commit alone, the newest first.
func (p *painter) missing() Relation {
	var lost []*painted
	for _, c := range p.commits {
		if c.mark == fromLast {
			lost = append(lost, c)
		}
	}
	slices.SortFunc(lost, func(a, b *painted) int {
		if a.when != b.when {
			return int(b.when - a.when)
		}
		return slices.Compare(a.hash[:], b.hash[:])
	})
	r := Relation{MissingAll: len(lost)}
	for _, c := range lost[:min(len(lost), MaxMissing)] {
		r.Missing = append(r.Missing, c.hash)
	}
	return r
}
