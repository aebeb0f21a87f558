package queue

import (
	"cmp"
	"container/heap"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// kin is a member, as it was put last. One that is no longer in the index, or was put
// again, may still stand in the heaps: it is not in members.
type kin struct {
	id                  layout.ItemID
	done, failed, alive bool
	begins              bool // could begin, but for its place
	open                bool // has a place

	until   time.Time // it cannot begin before
	rank    int
	created time.Time
}

// rebuild forgets who has the places, as there are others now.
func (f *family) rebuild() {
	f.next.of, f.open.of, f.places = nil, nil, 0
	for _, k := range f.members {
		if k.open = false; k.begins && f.policy.pool > 0 {
			heap.Push(&f.next, k)
		}
	}
}

// newKin sees an item as its own record has it; rank is its lane's.
func newKin(it *Item, rank int) *kin {
	k := &kin{id: it.ID, rank: rank, created: it.Created, failed: it.Broken != "", done: it.Broken == "" && len(it.Runs) > 0}
	open, begun := false, false
	for r := range it.Runs {
		run := &it.Runs[r]
		k.failed = k.failed || run.Status == state.Failed
		k.done = k.done && (run.Status == state.Completed || run.Status == state.Inactive)
		k.alive = k.alive || it.Begun(run)
		for i := range run.Steps {
			s := &run.Steps[i]
			begun = begun || i > 0 && s.Attempts > 0
			why := s.ByRecord()
			if s.Status != state.Waiting || why != nil && why.Until.IsZero() {
				continue
			}
			at := time.Time{}
			if why != nil {
				at = why.Until
			}
			if !open || at.Before(k.until) {
				k.until = at
			}
			open = true
		}
	}
	k.alive = k.alive && !k.failed
	k.begins = open && !begun && !k.failed && !it.Held
	return k
}

// settle gives the places to those that are first, and tells whose place is another.
func (f *family) settle() (moved []layout.ItemID) {
	if f.policy.pool == 0 {
		return nil
	}
	room := max(0, f.policy.pool-f.alive)
	give := func() bool {
		k := f.first(&f.next)
		if k == nil {
			return false
		}
		heap.Pop(&f.next)
		k.open = true
		f.places++
		heap.Push(&f.open, k)
		moved = append(moved, k.id)
		return true
	}
	take := func() {
		k := f.first(&f.open)
		heap.Pop(&f.open)
		k.open = false
		f.places--
		heap.Push(&f.next, k)
		moved = append(moved, k.id)
	}
	for f.places > room {
		take()
	}
	for f.places < room && give() {
	}
	for room > 0 {
		best, worst := f.first(&f.next), f.first(&f.open)
		if best == nil || worst == nil || best.compare(worst) >= 0 {
			break
		}
		give()
		take()
	}
	return moved
}

// first is the top of one of the family's heaps, which it clears of those that do not
// belong there any more.
func (f *family) first(h *kinHeap) *kin {
	for len(h.of) > 0 {
		if k := h.of[0]; f.members[k.id] == k && k.open == h.worst {
			return k
		}
		heap.Pop(h)
	}
	return nil
}

func (k *kin) compare(o *kin) int {
	return cmp.Or(k.until.Compare(o.until), cmp.Compare(k.rank, o.rank), k.created.Compare(o.created), cmp.Compare(k.id, o.id))
}

// kinHeap has the best on top, or the worst.
type kinHeap struct {
	of    []*kin
	worst bool
}

func (h *kinHeap) Len() int { return len(h.of) }

func (h *kinHeap) Less(i, j int) bool {
	if h.worst {
		i, j = j, i
	}
	return h.of[i].compare(h.of[j]) < 0
}

func (h *kinHeap) Swap(i, j int) { h.of[i], h.of[j] = h.of[j], h.of[i] }

func (h *kinHeap) Push(v any) { h.of = append(h.of, v.(*kin)) }

func (h *kinHeap) Pop() any {
	last := h.of[len(h.of)-1]
	h.of = h.of[:len(h.of)-1]
	return last
}
