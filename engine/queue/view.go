package queue

import (
	"iter"
	"maps"
	"slices"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Around says what other items make of a step that its own item lets start.
func (v View) Around(id layout.ItemID, run string, step layout.Name) (blocked *state.Reason, unneeded string) {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	b := x.table.Get(packed.BitsOf(id))
	if b == nil || x.at.Read(b) && x.at.Alone() { // it is asked at every transition
		return nil, ""
	}
	it := x.item(id)
	for r, i := range it.Steps() {
		if s := &r.Steps[i]; r.Name == run && layout.Name(r.Plan.Steps[i].Name) == step {
			if why := s.Own(); packed.ByOthers(why) {
				blocked = why
			}
			unneeded = s.SkipByOthers()
		}
	}
	return blocked, unneeded
}

// Pages is how many pages the items are kept in, by the first digits of their identifiers.
const Pages = packed.Pages

// Page tells what stands in a page, unless nothing of it has changed since it had a stamp, which
// is 0 for a page that was never looked at. Each item, in the order of identifiers, is visited
// with its records' bytes, which stay valid during the visit; get makes an item of them, which
// is nobody else's. No other question is answered meanwhile.
func (v View) Page(page int, since uint64, visit func(bits uint64, records []byte, get func() *Item)) (stamp uint64) {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.table.Look(page, since, func(bits uint64, b []byte) {
		visit(bits, b, func() *Item { return x.item(layout.ItemIDOf(bits)) })
	})
}

// Names are those that the items have.
type Names struct{ Collections, Lanes, Batches []string }

// Known gives the names that the items have, in no order.
func (v View) Known() (out Names) {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	seen := [3]map[uint64]bool{{}, {}, {}}
	x.table.Each(0, packed.Pages, func(_ uint64, b []byte) {
		collection, batch, lane := packed.NamesOf(b)
		seen[0][collection], seen[1][lane], seen[2][batch] = true, true, true
	})
	for i, to := range []*[]string{&out.Collections, &out.Lanes, &out.Batches} {
		for n := range seen[i] {
			if n != 0 {
				*to = append(*to, x.names.Text(n))
			}
		}
	}
	return out
}

// KnowsName reports whether some item has, or had, a workflow, collection or other thing
// of that name.
func (v View) KnowsName(name string) bool { return v.s.names.Has(name) }

// Plans are the definitions that items run by.
func (v View) Plans() (plans []*state.Definition) {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	_, all := x.names.All()
	for i, p := range x.count.plans {
		if p.runs > 0 {
			plans = append(plans, all[i])
		}
	}
	return plans
}

// Families gives those of an item, in the order of their names.
func (v View) Families(parent layout.ItemID) (all []Family) {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.others.Families(parent)
}

// Children gives the children of all steps of an item: those that failed first, then
// those that are not done, each the oldest first. The items must not be changed.
func (v View) Children(parent layout.ItemID) []*Item {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.others.Children(parent)
}

// Running gives the items that have a step in progress, in no order.
func (v View) Running() []*Item {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	items := make([]*Item, 0, len(x.runs))
	for bits := range x.runs {
		items = append(items, x.item(layout.ItemIDOf(bits)))
	}
	return items
}

// Open is the number of steps that wait or run and can be expected to be done
// without a person.
func (v View) Open() int {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.count.open
}

// Len is the number of items.
func (v View) Len() int {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.count.items
}

// Item finds one item; nil when there is none. It is a copy.
func (v View) Item(id layout.ItemID) *Item {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.item(id)
}

// Bare is View.Item without the reasons why the item's steps do not start: their Blocked is nil.
func Bare(v View, id layout.ItemID) *Item {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.read(id, packed.UnpackBare)
}

// Held reports whether an item is held.
func (v View) Held(id layout.ItemID) bool {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	b := x.table.Get(packed.BitsOf(id))
	return b != nil && packed.TraitsOf(b)&packed.Held != 0
}

// Items gives all items, oldest first. They are copies.
func (v View) Items() iter.Seq[*Item] { return v.With(0) }

// With gives the items that have one of the traits, oldest first, children that
// were made in the same instant by their names; 0: all. They are copies, each made when it is come to: one that changes meanwhile is
// given as it is then.
func (v View) With(any Trait) iter.Seq[*Item] { return v.after(any, nil) }

// After gives the items of With that come after one in their order; it does not look at
// those before it.
func (v View) After(any Trait, last *Item) iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		for it := range v.after(any, last) {
			if CompareAge(it, last) > 0 && !yield(it) {
				return
			}
		}
	}
}

// CompareAge has the older of two items first, as they are listed.
func CompareAge(a, b *Item) int { return packed.CompareAge(a, b) }

// after is With of the items that were made in the instant of last, or later.
func (v View) after(any Trait, last *Item) iter.Seq[*Item] {
	var from int64
	if last != nil {
		from = last.Created.UnixMilli()
	}
	x := v.s
	x.mu.Lock()
	type found struct {
		aged
		kin bool
	}
	var all []found
	if any == 0 && last == nil {
		all = make([]found, 0, x.count.items)
	}
	x.table.Each(0, packed.Pages, func(bits uint64, b []byte) {
		t := packed.TraitsOf(b)
		if (any == 0 || t&any != 0) && packed.CreatedOf(b) >= from {
			all = append(all, found{aged{packed.CreatedOf(b), bits}, t&Kin != 0})
		}
	})
	x.mu.Unlock()
	slices.SortFunc(all, func(a, b found) int {
		if a.created == b.created && a.kin != b.kin {
			return map[bool]int{false: -1, true: 1}[a.kin]
		}
		return a.Compare(b.aged)
	})
	return func(yield func(*Item) bool) {
		var same []aged
		for i, f := range all {
			same = append(same, f.aged)
			if i+1 < len(all) && f.kin && all[i+1].kin && all[i+1].created == f.created {
				continue
			}
			if !v.yieldSame(same, yield) {
				return
			}
			same = same[:0]
		}
	}
}

// yieldSame gives items that were made in the same millisecond.
func (v View) yieldSame(same []aged, yield func(*Item) bool) bool {
	if len(same) == 1 {
		it := v.Item(layout.ItemIDOf(same[0].item))
		return it == nil || yield(it)
	}
	items := make([]*Item, 0, len(same))
	for _, f := range same {
		if it := v.Item(layout.ItemIDOf(f.item)); it != nil {
			items = append(items, it)
		}
	}
	slices.SortStableFunc(items, packed.CompareAge)
	for _, it := range items {
		if !yield(it) {
			return false
		}
	}
	return true
}

// Ahead tells how many items of each collection have a step that runs, or can be expected
// to run without a person and without other items.
func (v View) Ahead() map[layout.Name]int {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	ahead := maps.Clone(x.count.ahead)
	maps.DeleteFunc(ahead, func(_ layout.Name, n int) bool { return n == 0 })
	return ahead
}
