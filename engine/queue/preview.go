package queue

import (
	"cmp"
	"container/heap"
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
		full, ok := x.entryOf(e)
		if ok && (q.Entry == nil || q.Entry(full)) {
			ready = append(ready, full)
		}
	}
	x.mu.Unlock()
	for it := range x.With(Person) {
		if waits = append(waits, people(it, q)...); q.Limit > 0 && len(waits) >= q.Limit {
			return ready, waits[:q.Limit]
		}
	}
	return ready, waits
}

// people gives the steps of an item that wait for a person.
func people(it *Item, q Question) (out []Entry) {
	for r := range it.Runs {
		run := &it.Runs[r]
		for i := range run.Steps {
			e := Entry{Item: it, Run: run.Name, Step: layout.Name(run.Plan.Steps[i].Name), N: i}
			if it.Waits(run, i) && (q.Step == nil || q.Step(StepID{run.Plan.Name, e.Step})) && (q.Entry == nil || q.Entry(e)) {
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
						bn.leaves = append(bn.leaves, cursor{key: key, place: place{lane.key, collection.key, batch.key}, of: batch.entries})
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
	heap.Init(&n.leaves)
	n.within = slices.DeleteFunc(n.within, func(in *pnode) bool { return !in.order() })
	heap.Init(&n.within)
	return !n.empty()
}

func (n *pnode) empty() bool { return len(n.leaves) == 0 && len(n.within) == 0 }

// next is the entry that would be handed out next.
func (p *preview) next(x *Index, now time.Time) (entry, bool) {
	for len(p.root.within) > 0 {
		c, way := p.root.front()
		e, key, at := c.entry(), c.key, c.place
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
	var way []*pnode
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
func (h *pheap) Push(v any)   { *h = append(*h, v.(*pnode)) }
func (h *pheap) Pop() any {
	old := *h
	n := old[len(old)-1]
	*h = old[:len(old)-1]
	return n
}

// cursor stands at one place of a heap that is gone through in order: a place is
// gone to after its parent.
type cursor struct {
	key   readyKey
	place place
	of    entryHeap
	at    int
}

func (c *cursor) entry() entry { return c.of[c.at] }

// cursors have the next entry on top.
type cursors []cursor

func (c cursors) Len() int           { return len(c) }
func (c cursors) Less(i, j int) bool { return c[i].entry().compare(c[j].entry()) < 0 }
func (c cursors) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *cursors) Push(v any)        { *c = append(*c, v.(cursor)) }
func (c *cursors) Pop() any {
	old := *c
	last := old[len(old)-1]
	*c = old[:len(old)-1]
	return last
}

// advance replaces the top by the places below it.
func (c *cursors) advance() {
	top := heap.Pop(c).(cursor)
	for _, at := range []int{2*top.at + 1, 2*top.at + 2} {
		if at < len(top.of) {
			below := top
			below.at = at
			heap.Push(c, below)
		}
	}
}
