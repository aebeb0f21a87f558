package queue

import (
	"cmp"
	"container/heap"

	"bagpipe/engine/queue/internal/packed"
)

// The rules are: what is ready stands in a tree: lane, then collection, then batch,
// then the oldest item. A branch is taken from when its turn has come: each take
// moves its turn on, by one among collections and among batches, and by the lane's
// stride among lanes; the branch with the earliest turn is next, and among equals
// the one that came first. So a batch of 25,000 gets every second take while
// one single item beside it is ready. A branch that had nothing comes in where the
// others are: what it did not take earlier it does not get later.
//
// The turns are one for all steps (account); each step has a tree of its own
// (branch), whose heaps are put in order as they are looked at, as a turn only ever
// moves on.

// account is whose turn it is, of one lane, collection or batch.
type account struct {
	turn   float64
	clock  float64 // the turn of the member that was taken from last
	within map[uint64]*account
	held   int // entries, in the trees of all steps
	came   int // its number among those within the same account, as they came
	comers int // how many have come within it
}

func (a *account) of(key uint64) *account {
	in := a.within[key]
	if in == nil {
		if a.within == nil {
			a.within = map[uint64]*account{}
		}
		in = &account{}
		a.within[key] = in
	}
	return in
}

// enter counts an entry; the first one makes the account one of those in turn.
func (a *account) enter(around *account, stride float64) {
	if a.held++; a.held == 1 {
		a.turn = max(a.turn, around.clock+stride)
		around.comers++
		a.came = around.comers
	}
}

// taken moves the turn on.
func (a *account) taken(around *account, stride float64) {
	around.clock = max(around.clock, a.turn)
	a.turn += stride
}

// entry is a ready step of an item.
type entry struct {
	created int64 // ms
	item    uint64
	run     uint32 // the number of its name
	place   uint16 // among the item's runs
	n       uint16
}

func (e entry) compare(o entry) int {
	return cmp.Or(cmp.Compare(e.created, o.created), cmp.Compare(e.item, o.item), cmp.Compare(e.place, o.place), cmp.Compare(e.run, o.run), cmp.Compare(e.n, o.n))
}

// place is where an entry stands: its lane, collection and batch.
type place struct{ lane, collection, batch uint64 }

// standsAt is where the entries of an item stand.
func standsAt(g *packed.Outline) place { return place{g.Lane, g.Collection, g.Batch} }

func (p place) level(depth int) uint64 { return [...]uint64{p.lane, p.collection, p.batch}[depth] }

// branch is one branch of a step's tree; a leaf holds entries.
type branch struct {
	account *account
	key     uint64
	depth   int // 0: the root; 1: a lane; 2: a collection; 3: a batch
	rank    int // of a lane

	within  branchHeap
	byKey   map[uint64]*branch
	entries entryHeap

	turn float64 // as it was when the branch was put in its place among its neighbours
	came int
	at   int // its place
}

func newRoot(accounts *account) *branch { return &branch{account: accounts} }

func (b *branch) empty() bool { return len(b.within) == 0 && len(b.entries) == 0 }

// push puts an entry in its place.
func (b *branch) push(e entry, p place, lanes func(lane uint64) (rank int, stride float64)) {
	if b.depth == 3 {
		heap.Push(&b.entries, e)
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
		in = &branch{account: acc, key: key, depth: b.depth + 1, rank: rank, at: -1}
		if b.byKey == nil {
			b.byKey = map[uint64]*branch{}
		}
		b.byKey[key] = in
	}
	in.push(e, p, lanes)
	in.turn, in.came = acc.turn, acc.came
	if in.at < 0 {
		heap.Push(&b.within, in)
	} else {
		heap.Fix(&b.within, in.at)
	}
}

// first brings the branch whose turn it is to the front; nil when there is none.
func (b *branch) first() *branch {
	for len(b.within) > 0 {
		top := b.within[0]
		if top.empty() {
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

// best gives the way to the entry that is next: lane, collection and batch. Entries
// that keep does not want are dropped; collections that pass wants left out are
// passed over. ok is false when there is none.
func (b *branch) best(keep func(entry, place) bool, pass func(p place) bool) (way [3]*branch, ok bool) {
	var aside []*branch
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
		if lane.empty() {
			b.drop(lane)
			continue
		}
		heap.Remove(&b.within, lane.at)
		aside = append(aside, lane)
	}
}

func (b *branch) bestOfLane(keep func(entry, place) bool, pass func(p place) bool) (way [3]*branch, ok bool) {
	var aside []*branch
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
		if pass(place{lane: b.key, collection: collection.key}) {
			heap.Remove(&b.within, collection.at)
			aside = append(aside, collection)
			continue
		}
		batch := collection.first()
		if batch == nil {
			b.drop(collection)
			continue
		}
		if batch.settle(keep, place{b.key, collection.key, batch.key}, b.account, collection.account) {
			return [3]*branch{b, collection, batch}, true
		}
		collection.drop(batch)
	}
}

// settle drops entries that are not wanted from the front of a leaf.
func (b *branch) settle(keep func(entry, place) bool, p place, accounts ...*account) bool {
	for len(b.entries) > 0 {
		if keep(b.entries[0], p) {
			return true
		}
		heap.Pop(&b.entries)
		b.account.held--
		for _, a := range accounts {
			a.held--
		}
	}
	return false
}

// drop takes an empty branch out.
func (b *branch) drop(in *branch) {
	heap.Remove(&b.within, in.at)
	delete(b.byKey, in.key)
}

// take removes the entry that best found, and moves the turns on.
func (b *branch) take(way [3]*branch, stride float64) entry {
	lane, collection, batch := way[0], way[1], way[2]
	e := heap.Pop(&batch.entries).(entry)
	around := [3]*branch{b, lane, collection}
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

// before tells which of two ways is to be gone first.
func before(a, b [3]*branch) bool {
	for i := range a {
		x, y := a[i].account, b[i].account
		if x == y {
			continue
		}
		return cmp.Or(cmp.Compare(x.turn, y.turn), cmp.Compare(a[i].rank, b[i].rank), cmp.Compare(x.came, y.came)) < 0
	}
	return a[2].entries[0].compare(b[2].entries[0]) < 0
}

// branchHeap orders the branches of one by their turns as last seen.
type branchHeap []*branch

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
	b := v.(*branch)
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

// entryHeap has the oldest on top.
type entryHeap []entry

func (h entryHeap) Len() int { return len(h) }

func (h entryHeap) Less(i, j int) bool { return h[i].compare(h[j]) < 0 }

func (h entryHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *entryHeap) Push(v any) { *h = append(*h, v.(entry)) }

func (h *entryHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}
