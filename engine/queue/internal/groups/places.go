package groups

import (
	"cmp"
	"time"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/queue/internal/turns"
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
	handed              int  // steps of it that are handed out

	until   time.Time // it cannot begin before
	rank    int
	created time.Time
}

// rebuild forgets who has the places, as there are others now.
func (f *family) rebuild() {
	f.next, f.open, f.places = nil, nil, 0
	for _, k := range f.members {
		if k.open = false; k.begins && f.policy.pool > 0 {
			f.next.Push(nextKin{k})
		}
	}
}

// newKin sees an item as its own record has it; rank is its lane's.
func newKin(it *packed.Item, rank int) *kin {
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
		k := firstOf(f, &f.next)
		if k == nil {
			return false
		}
		f.next.Pop()
		k.open = true
		f.places++
		f.open.Push(openKin{k})
		moved = append(moved, k.id)
		return true
	}
	take := func() {
		k := firstOf(f, &f.open)
		f.open.Pop()
		k.open = false
		f.places--
		f.next.Push(nextKin{k})
		moved = append(moved, k.id)
	}
	for f.places > room {
		take()
	}
	for f.places < room && give() {
	}
	for room > 0 {
		best, worst := firstOf(f, &f.next), firstOf(f, &f.open)
		if best == nil || worst == nil || best.compare(worst) >= 0 {
			break
		}
		give()
		take()
	}
	return moved
}

// firstOf is the top of one of the family's heaps, which it clears of members that do not
// belong there any more.
func firstOf[T heaped[T]](f *family, h *turns.Heap[T]) *kin {
	for len(*h) > 0 {
		if k, belongs := (*h)[0].member(); belongs && f.members[k.id] == k {
			return k
		}
		h.Pop()
	}
	return nil
}

type heaped[T any] interface {
	Compare(T) int
	member() (k *kin, belongs bool)
}

// nextKin is a member without a place, in a heap with the best on top.
type nextKin struct{ *kin }

func (n nextKin) Compare(o nextKin) int { return n.compare(o.kin) }

func (n nextKin) member() (*kin, bool) { return n.kin, !n.open }

// openKin is a member with a place, in a heap with the worst on top.
type openKin struct{ *kin }

func (n openKin) Compare(o openKin) int { return o.compare(n.kin) }

func (n openKin) member() (*kin, bool) { return n.kin, n.open }

func (k *kin) compare(o *kin) int {
	return cmp.Or(cmp.Compare(o.handed, k.handed), k.until.Compare(o.until), cmp.Compare(k.rank, o.rank), k.created.Compare(o.created), cmp.Compare(k.id, o.id))
}
