package queue

import (
	"cmp"
	"container/heap"
	"iter"
	"maps"
	"slices"
	"time"

	"bagpipe/layout"
)

// Question narrows what is listed of what is ready; zero fields do not.
type Question struct {
	Step  func(StepID) bool // asked once for each step
	Entry func(Entry) bool  // asked of each entry that the step lets through
	Limit int               // of each list; 0: all
	Brief bool              // of items without what Entry asks, no more than the head is wanted
}

// Queue lists, in the order they would be handed out if there were no limits, the
// steps that are ready at now, and those that wait for a person alone, oldest first.
// With a limit it looks at little more than it lists.
func (x *Index) Queue(now time.Time, q Question) (ready, waits []Entry) {
	x.mu.Lock()
	x.settle(now)
	p := x.preview(q)
	for q.Limit == 0 || len(ready) < q.Limit {
		e, ok := p.next(x, now)
		if !ok {
			break
		}
		if q.Brief && q.Entry == nil {
			ready = append(ready, x.brief(e))
			continue
		}
		full, ok := x.entryOf(e)
		if ok && (q.Entry == nil || q.Entry(full)) {
			ready = append(ready, full)
		}
	}
	waiting := heapOf(x.people)
	x.mu.Unlock()
	for it := range x.oldest(waiting) {
		if waits = append(waits, people(it, q)...); q.Limit > 0 && len(waits) >= q.Limit {
			return ready, waits[:q.Limit]
		}
	}
	return ready, waits
}

// Off gives the items of which a step is out of the flow, the oldest first; it looks
// at no other.
func (x *Index) Off() iter.Seq[*Item] {
	x.mu.Lock()
	off := heapOf(x.off)
	x.mu.Unlock()
	return x.oldest(off)
}

func heapOf(items map[uint64]int64) agedHeap {
	all := make(agedHeap, 0, len(items))
	for bits, created := range items {
		all = append(all, aged{created, bits})
	}
	heap.Init(&all)
	return all
}

// oldest gives the items that are still there, the oldest first.
func (x *Index) oldest(all agedHeap) iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		for len(all) > 0 {
			it := x.Item(layout.ItemIDOf(heap.Pop(&all).(aged).item))
			if it != nil && !yield(it) {
				return
			}
		}
	}
}

// brief is an entry that stillReady has just looked at, of which x.at is the item.
func (x *Index) brief(e entry) Entry {
	id := layout.ItemIDOf(e.item)
	run := x.at.Run(uint64(e.run))
	it := &Item{ID: id, Collection: layout.Name(x.names.Text(x.at.Collection)), Batch: x.names.Text(x.at.Batch),
		Lane: layout.Name(x.names.Text(x.at.Lane)), Created: time.UnixMilli(x.at.Created).UTC(), Label: string(x.at.Label)}
	out := Entry{Item: it, Run: x.names.Text(uint64(e.run)), Step: layout.Name(x.names.Plan(run.Plan).Steps[e.n].Name), N: int(e.n), Since: it.Created}
	if since := x.at.Steps[run.From+int(e.n)].Since; since != 0 {
		out.Since = time.UnixMilli(since).UTC()
	}
	return out
}

// aged is an item and its creation.
type aged struct {
	created int64 // ms
	item    uint64
}

func (a aged) compare(b aged) int {
	return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.item, b.item))
}

// agedHeap has the oldest on top.
type agedHeap []aged

func (h agedHeap) Len() int { return len(h) }

func (h agedHeap) Less(i, j int) bool { return h[i].compare(h[j]) < 0 }

func (h agedHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *agedHeap) Push(v any) { *h = append(*h, v.(aged)) }

func (h *agedHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// people gives the steps of an item that wait for a person.
func people(it *Item, q Question) (out []Entry) {
	for r := range it.Runs {
		run := &it.Runs[r]
		for i := range run.Steps {
			e := Entry{Item: it, Run: run.Name, Step: layout.Name(run.Plan.Steps[i].Name), N: i}
			if it.Waits(run, i) && (q.Step == nil || q.Step(StepID{Workflow: run.Plan.Name, Step: e.Step})) && (q.Entry == nil || q.Entry(e)) {
				out = append(out, e)
			}
		}
	}
	return out
}

// preview goes through what is ready as Take would, and changes nothing: the turns
// are copied, and heaps are read without taking them apart.
type preview struct {
	root *pnode
	last entry
	any  bool
}

// pnode is a branch of all steps together.
type pnode struct {
	turn, stride float64
	rank, came   int
	within       pheap
	byKey        map[uint64]*pnode
	leaves       cursors
}

func (x *Index) preview(q Question) *preview {
	p := &preview{root: &pnode{}}
	keys := slices.SortedFunc(maps.Keys(x.ready), func(a, b readyKey) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Step, b.Step))
	})
	for _, key := range keys {
		if q.Step != nil && !q.Step(key.StepID) {
			continue
		}
		for _, lane := range x.ready[key].within {
			_, stride := x.lane(lane.key)
			ln := p.root.of(lane, stride)
			for _, collection := range lane.within {
				cn := ln.of(collection, 1)
				for _, batch := range collection.within {
					bn := cn.of(batch, 1)
					if len(batch.entries) > 0 {
						bn.leaves = append(bn.leaves, cursor{leaf: &pleaf{key, place{lane.key, collection.key, batch.key}, batch.entries}})
					}
				}
			}
		}
	}
	p.root.order()
	return p
}

func (n *pnode) of(b *branch, stride float64) *pnode {
	in := n.byKey[b.key]
	if in == nil {
		in = &pnode{turn: b.account.turn, stride: stride, rank: b.rank, came: b.account.came}
		if n.byKey == nil {
			n.byKey = map[uint64]*pnode{}
		}
		n.byKey[b.key] = in
		n.within = append(n.within, in)
	}
	return in
}

// order makes heaps of the branches, from the leaves up, and leaves out empty ones.
func (n *pnode) order() bool {
	n.leaves.order()
	n.within = slices.DeleteFunc(n.within, func(in *pnode) bool { return !in.order() })
	heap.Init(&n.within)
	return !n.empty()
}

func (n *pnode) empty() bool { return len(n.leaves) == 0 && len(n.within) == 0 }

// next is the entry that would be handed out next.
func (p *preview) next(x *Index, now time.Time) (entry, bool) {
	for len(p.root.within) > 0 {
		c, way := p.root.front()
		e, key, at := c.entry(), c.leaf.key, c.leaf.place
		good := x.stillReady(e, key, at, now) && !(p.any && p.last == e)
		p.root.advance(way, good)
		if good {
			p.last, p.any = e, true
			return e, true
		}
	}
	return entry{}, false
}

func (n *pnode) front() (*cursor, []*pnode) {
	way := make([]*pnode, 0, 4)
	for at := n; ; at = at.within[0] {
		way = append(way, at)
		if len(at.leaves) > 0 {
			return &at.leaves[0], way
		}
	}
}

// advance moves on past the front, and its turns if it was taken.
func (n *pnode) advance(way []*pnode, taken bool) {
	leaf := way[len(way)-1]
	leaf.leaves.advance()
	for i := len(way) - 1; i > 0; i-- {
		in, around := way[i], way[i-1]
		if taken {
			in.turn += in.stride
		}
		if in.empty() {
			heap.Pop(&around.within)
		} else {
			heap.Fix(&around.within, 0)
		}
	}
}

type pheap []*pnode

func (h pheap) Len() int { return len(h) }

func (h pheap) Less(i, j int) bool {
	a, b := h[i], h[j]
	return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.rank, b.rank), cmp.Compare(a.came, b.came)) < 0
}

func (h pheap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *pheap) Push(v any) { *h = append(*h, v.(*pnode)) }

func (h *pheap) Pop() any {
	old := *h
	n := old[len(old)-1]
	*h = old[:len(old)-1]
	return n
}

// cursor stands at one place of a heap that is gone through in order: a place is
// gone to after its parent.
type cursor struct {
	leaf *pleaf
	at   int
}

// pleaf is a heap of entries, which is not changed.
type pleaf struct {
	key   readyKey
	place place
	of    entryHeap
}

func (c cursor) entry() entry { return c.leaf.of[c.at] }

// cursors have the next entry on top. The heap is kept by hand: of all that is ready
// each is put into it once, and boxing them would be most of the work.
type cursors []cursor

func (c cursors) order() {
	for i := len(c)/2 - 1; i >= 0; i-- {
		c.down(i)
	}
}

func (c cursors) down(i int) {
	for {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(c); k++ {
			if c[k].entry().compare(c[least].entry()) < 0 {
				least = k
			}
		}
		if least == i {
			return
		}
		c[i], c[least] = c[least], c[i]
		i = least
	}
}

func (c cursors) up(i int) {
	for i > 0 {
		around := (i - 1) / 2
		if c[i].entry().compare(c[around].entry()) >= 0 {
			return
		}
		c[i], c[around] = c[around], c[i]
		i = around
	}
}

// advance replaces the top by the places below it.
func (c *cursors) advance() {
	all := *c
	top := all[0]
	below := 2*top.at + 1
	if below >= len(top.leaf.of) {
		all[0] = all[len(all)-1]
		all = all[:len(all)-1]
	} else {
		all[0].at = below
	}
	all.down(0)
	if below+1 < len(top.leaf.of) {
		all = append(all, cursor{top.leaf, below + 1})
		all.up(len(all) - 1)
	}
	*c = all
}
