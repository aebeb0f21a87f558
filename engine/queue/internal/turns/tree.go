package turns

import (
	"cmp"
	"container/heap"
)

// Tree is one branch of a step's tree; a leaf holds entries.
type Tree struct {
	account *Account
	key     uint64
	depth   int // 0: the root; 1: a lane; 2: a collection; 3: a batch
	rank    int // of a lane

	within  branchHeap
	byKey   map[uint64]*Tree
	entries Heap[Entry]

	turn float64 // as it was when the branch was put in its place among its neighbours
	came int
	at   int // its place
}

// New makes an empty tree.
func New(accounts *Account) *Tree { return &Tree{account: accounts} }

// Empty reports whether the tree holds no entry.
func (b *Tree) Empty() bool { return len(b.within) == 0 && len(b.entries) == 0 }

// Lanes gives a lane's rank, and how far a take moves the lane's turn on.
type Lanes func(lane uint64) (rank int, stride float64)

// Push puts an entry in its place.
func (b *Tree) Push(e Entry, p Place, lanes Lanes) {
	if b.depth == 3 {
		b.entries.Push(e)
		return
	}
	key := p.level(b.depth)
	in, stride, rank := b.byKey[key], 0.0, 0
	if b.depth == 0 {
		rank, stride = lanes(key)
	}
	acc := b.account.of(key)
	acc.enter(b.account, stride)
	if in == nil {
		in = &Tree{account: acc, key: key, depth: b.depth + 1, rank: rank, at: -1}
		if b.byKey == nil {
			b.byKey = map[uint64]*Tree{}
		}
		b.byKey[key] = in
	}
	in.Push(e, p, lanes)
	in.turn, in.came = acc.turn, acc.came
	if in.at < 0 {
		heap.Push(&b.within, in)
	} else {
		heap.Fix(&b.within, in.at)
	}
}

// first brings the branch whose turn it is to the front; nil when there is none.
func (b *Tree) first() *Tree {
	for len(b.within) > 0 {
		top := b.within[0]
		if top.Empty() {
			b.drop(top)
			continue
		}
		if top.turn == top.account.turn && top.came == top.account.came {
			return top
		}
		top.turn, top.came = top.account.turn, top.account.came
		heap.Fix(&b.within, 0)
	}
	return nil
}

// Best gives the way to the entry that is next: lane, collection and batch. Entries
// that keep does not want are dropped; collections that pass wants left out are
// passed over. ok is false when there is none.
func (b *Tree) Best(keep func(Entry, Place) bool, pass func(Place) bool) (way Way, ok bool) {
	var aside []*Tree
	defer func() {
		for _, a := range aside {
			heap.Push(&b.within, a)
		}
	}()
	for {
		lane := b.first()
		if lane == nil {
			return way, false
		}
		if way, ok = lane.bestOfLane(keep, pass); ok {
			return way, true
		}
		if lane.Empty() {
			b.drop(lane)
			continue
		}
		heap.Remove(&b.within, lane.at)
		aside = append(aside, lane)
	}
}

func (b *Tree) bestOfLane(keep func(Entry, Place) bool, pass func(Place) bool) (way Way, ok bool) {
	var aside []*Tree
	defer func() {
		for _, a := range aside {
			heap.Push(&b.within, a)
		}
	}()
	for {
		collection := b.first()
		if collection == nil {
			return way, false
		}
		if pass(Place{Lane: b.key, Collection: collection.key}) {
			heap.Remove(&b.within, collection.at)
			aside = append(aside, collection)
			continue
		}
		batch := collection.first()
		if batch == nil {
			b.drop(collection)
			continue
		}
		if batch.settle(keep, Place{b.key, collection.key, batch.key}, b.account, collection.account) {
			return Way{b, collection, batch}, true
		}
		collection.drop(batch)
	}
}

// settle drops entries that are not wanted from the front of a leaf.
func (b *Tree) settle(keep func(Entry, Place) bool, p Place, accounts ...*Account) bool {
	for len(b.entries) > 0 {
		if keep(b.entries[0], p) {
			return true
		}
		b.entries.Pop()
		b.account.held--
		for _, a := range accounts {
			a.held--
		}
	}
	return false
}

// drop takes an empty branch out.
func (b *Tree) drop(in *Tree) {
	heap.Remove(&b.within, in.at)
	delete(b.byKey, in.key)
}

// Take removes the entry that Best found, and moves the turns on.
func (b *Tree) Take(way Way, stride float64) Entry {
	lane, collection, batch := way[0], way[1], way[2]
	e := batch.entries.Pop()
	around := Way{b, lane, collection}
	for i, in := range way {
		in.account.held--
		if i == 0 {
			in.account.taken(b.account, stride)
		} else {
			in.account.taken(around[i].account, 1)
		}
	}
	return e
}

// Way leads to an entry: by its lane, collection and batch.
type Way [3]*Tree

// Entry is the entry at the end of the way.
func (w Way) Entry() Entry { return w[2].entries[0] }

// Lane is the number of the lane's name.
func (w Way) Lane() uint64 { return w[0].key }

// Before reports whether the turn of way a comes before that of b.
func Before(a, b Way) bool {
	for i := range a {
		x, y := a[i].account, b[i].account
		if x == y {
			continue
		}
		return cmp.Or(cmp.Compare(x.turn, y.turn), cmp.Compare(a[i].rank, b[i].rank), cmp.Compare(x.came, y.came)) < 0
	}
	return a.Entry().Compare(b.Entry()) < 0
}

// PushAll puts many entries in one place.
func (b *Tree) PushAll(entries []Entry, p Place, lanes Lanes) {
	first := 0
	for i := range entries {
		if entries[i].Compare(entries[first]) < 0 {
			first = i
		}
	}
	entries[0], entries[first] = entries[first], entries[0]
	b.Push(entries[0], p, lanes)
	leaf := b.byKey[p.Lane].byKey[p.Collection].byKey[p.Batch]
	leaf.entries = append(leaf.entries, entries[1:]...)
	leaf.entries.Order()
	lane := b.account.of(p.Lane)
	collection := lane.of(p.Collection)
	for _, a := range []*Account{lane, collection, collection.of(p.Batch)} {
		a.held += len(entries) - 1
	}
}

// Each visits all entries, in no order.
func (b *Tree) Each(visit func(Entry, Place)) {
	for _, lane := range b.within {
		for _, collection := range lane.within {
			for _, batch := range collection.within {
				for _, e := range batch.entries {
					visit(e, Place{lane.key, collection.key, batch.key})
				}
			}
		}
	}
}

// branchHeap orders the branches of one by their turns as last seen.
type branchHeap []*Tree

func (h branchHeap) Len() int { return len(h) }

func (h branchHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.rank, b.rank), cmp.Compare(a.came, b.came)) < 0
}

func (h branchHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *branchHeap) Push(v any) {
	b := v.(*Tree)
	b.at = len(*h)
	*h = append(*h, b)
}

func (h *branchHeap) Pop() any {
	old := *h
	b := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	b.at = -1
	return b
}
