package turns

import (
	"cmp"
	"slices"
)

// Walk goes through trees in the order of takes, and changes nothing: the turns are
// copied, and heaps are read without taking them apart.
type Walk struct {
	root branch
	last Entry
	any  bool
}

// branch is a branch of all trees together.
type branch struct {
	turn, stride float64
	rank, came   int
	within       Heap[*branch]
	byKey        map[uint64]*branch
	leaves       Heap[cursor]
}

// Add takes in a tree, which tree numbers; Start has to follow.
func (w *Walk) Add(tree int, t *Tree, lanes Lanes) {
	for _, lane := range t.within {
		_, stride := lanes(lane.key)
		inLane := w.root.of(lane, stride)
		for _, collection := range lane.within {
			inCollection := inLane.of(collection, 1)
			for _, batch := range collection.within {
				in := inCollection.of(batch, 1)
				if len(batch.entries) > 0 {
					in.leaves = append(in.leaves, cursor{leaf: &leaf{tree, Place{lane.key, collection.key, batch.key}, batch.entries}})
				}
			}
		}
	}
}

// Start puts the branches in their order.
func (w *Walk) Start() { w.root.order() }

// Next is the next entry that counts; ok is false after the last.
func (w *Walk) Next(counts func(e Entry, tree int, p Place) bool) (e Entry, ok bool) {
	for len(w.root.within) > 0 {
		way := w.root.front()
		c := way[len(way)-1].leaves[0]
		e := c.entry()
		good := counts(e, c.leaf.tree, c.leaf.place) && !(w.any && w.last == e)
		advance(way, good)
		if good {
			w.last, w.any = e, true
			return e, true
		}
	}
	return e, false
}

func (n *branch) of(t *Tree, stride float64) *branch {
	in := n.byKey[t.key]
	if in == nil {
		in = &branch{turn: t.account.turn, stride: stride, rank: t.rank, came: t.account.came}
		if n.byKey == nil {
			n.byKey = map[uint64]*branch{}
		}
		n.byKey[t.key] = in
		n.within = append(n.within, in)
	}
	return in
}

// order makes heaps of the branches, from the leaves up, and leaves out empty ones.
func (n *branch) order() (holds bool) {
	n.leaves.Order()
	n.within = slices.DeleteFunc(n.within, func(in *branch) bool { return !in.order() })
	n.within.Order()
	return !n.empty()
}

func (n *branch) empty() bool { return len(n.leaves) == 0 && len(n.within) == 0 }

// Compare has the branch first whose turn it is.
func (n *branch) Compare(o *branch) int {
	return cmp.Or(cmp.Compare(n.turn, o.turn), cmp.Compare(n.rank, o.rank), cmp.Compare(n.came, o.came))
}

// front is the way to the next entry.
func (n *branch) front() []*branch {
	way := make([]*branch, 0, 4)
	for at := n; ; at = at.within[0] {
		way = append(way, at)
		if len(at.leaves) > 0 {
			return way
		}
	}
}

// advance moves on past the entry at the end of a way, and its turns if it was taken.
func advance(way []*branch, taken bool) {
	next(&way[len(way)-1].leaves)
	for i := len(way) - 1; i > 0; i-- {
		in, around := way[i], way[i-1]
		if taken {
			in.turn += in.stride
		}
		if in.empty() {
			around.within.Pop()
		} else {
			around.within.Fix(0)
		}
	}
}

// cursor stands at one place of a heap that is read in order: a place is read after the
// place above it.
type cursor struct {
	leaf *leaf
	at   int
}

// leaf is a heap of entries, which is not changed.
type leaf struct {
	tree  int
	place Place
	of    Heap[Entry]
}

func (c cursor) entry() Entry { return c.leaf.of[c.at] }

// Compare has the cursor at the earlier entry first.
func (c cursor) Compare(o cursor) int { return c.entry().Compare(o.entry()) }

// next replaces the top by the places below it.
func next(all *Heap[cursor]) {
	top := (*all)[0]
	below := 2*top.at + 1
	if below >= len(top.leaf.of) {
		all.Pop()
		return
	}
	(*all)[0].at = below
	all.Fix(0)
	if below+1 < len(top.leaf.of) {
		all.Push(cursor{top.leaf, below + 1})
	}
}
