package packed

import (
	"cmp"
	"slices"

	"bagpipe/layout"
)

// Pages is how many pages a table has: one for each value of the first three digits
// of an identifier, as those are random. At a million items a page holds 244.
const Pages = 1 << 12

// Table holds packed items by identifier.
type Table struct {
	pages [Pages]page
}

// page holds its items side by side: the i-th from ends[i-1] to ends[i]. What a
// snapshot shares is copied before it is changed.
type page struct {
	ids    []uint64
	ends   []uint32
	data   []byte
	shared bool
	stamp  uint64 // is another after each change
}

// BitsOf is an identifier as a number.
func BitsOf(id layout.ItemID) uint64 { return id.Bits() }

// PageOf is the page of a number.
func PageOf(bits uint64) int { return int(bits>>(56-12)) & (Pages - 1) }

func (p *page) find(bits uint64) (int, bool) {
	return slices.BinarySearch(p.ids, bits)
}

func (p *page) from(i int) uint32 {
	if i == 0 {
		return 0
	}
	return p.ends[i-1]
}

func (p *page) at(i int) []byte { return p.data[p.from(i):p.ends[i]] }

// Empty reports whether there is no item.
func (t *Table) Empty() bool {
	for i := range t.pages {
		if len(t.pages[i].ids) > 0 {
			return false
		}
	}
	return true
}

// Get gives an item's bytes, which stay valid until the table changes; nil when
// there is no such item.
func (t *Table) Get(bits uint64) []byte {
	p := &t.pages[PageOf(bits)]
	if i, ok := p.find(bits); ok {
		return p.at(i)
	}
	return nil
}

// Put replaces an item's bytes, which are copied; it reports whether the item is new.
func (t *Table) Put(bits uint64, b []byte) (isNew bool) {
	p := &t.pages[PageOf(bits)]
	p.own()
	p.stamp++
	i, there := p.find(bits)
	from := p.from(i)
	to := from
	if there {
		to = p.ends[i]
	} else {
		p.ids = slices.Insert(p.ids, i, bits)
		p.ends = slices.Insert(p.ends, i, from)
	}
	p.data = slices.Replace(p.data, int(from), int(to), b...)
	p.move(i, len(b)-int(to-from))
	return !there
}

// Add appends the bytes of an item that is not there, for a table that is put in order
// before anything else is done with it: to insert a million takes far longer.
func (t *Table) Add(bits uint64, b []byte) {
	p := &t.pages[PageOf(bits)]
	p.stamp++
	p.ids = append(p.ids, bits)
	p.data = append(p.data, b...)
	p.ends = append(p.ends, uint32(len(p.data)))
}

// Sort puts the items of a run of pages in their order, each once.
func (t *Table) Sort(from, to int) {
	for p := from; p < to; p++ {
		t.pages[p].sort()
	}
}

// sort puts the items of a page in their order, each once.
func (p *page) sort() {
	places := make([]int, len(p.ids))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Or(cmp.Compare(p.ids[a], p.ids[b]), cmp.Compare(b, a)) })
	out := page{stamp: p.stamp + 1, ids: make([]uint64, 0, len(p.ids)), ends: make([]uint32, 0, len(p.ids)), data: make([]byte, 0, len(p.data))}
	for _, i := range places {
		if n := len(out.ids); n > 0 && out.ids[n-1] == p.ids[i] {
			continue // the last that was added stands
		}
		out.ids = append(out.ids, p.ids[i])
		out.data = append(out.data, p.at(i)...)
		out.ends = append(out.ends, uint32(len(out.data)))
	}
	*p = out
}

// Remove forgets an item.
func (t *Table) Remove(bits uint64) {
	p := &t.pages[PageOf(bits)]
	i, there := p.find(bits)
	if !there {
		return
	}
	p.own()
	p.stamp++
	from, to := p.from(i), p.ends[i]
	p.data = slices.Delete(p.data, int(from), int(to))
	p.move(i, -int(to-from))
	p.ids = slices.Delete(p.ids, i, i+1)
	p.ends = slices.Delete(p.ends, i, i+1)
}

// move shifts the ends from the i-th on.
func (p *page) move(i, by int) {
	for ; i < len(p.ends); i++ {
		p.ends[i] = uint32(int(p.ends[i]) + by)
	}
}

// own makes the page's lists its own before a change.
func (p *page) own() {
	if p.shared {
		p.ids, p.ends, p.data = slices.Clone(p.ids), slices.Clone(p.ends), slices.Clone(p.data)
		p.shared = false
	}
}

// share gives the pages as they are now, cheaply: who changes one copies it first.
func (t *Table) share() []page {
	out := make([]page, Pages)
	for i := range t.pages {
		t.pages[i].shared = true
		out[i] = t.pages[i]
	}
	return out
}

// Each visits the items of a run of pages.
func (t *Table) Each(from, to int, visit func(bits uint64, b []byte)) {
	for p := from; p < to; p++ {
		pg := &t.pages[p]
		for i, bits := range pg.ids {
			visit(bits, pg.at(i))
		}
	}
}

// Look visits the items of a page in the order of their identifiers, unless nothing of it has
// changed since it had a stamp; it gives the stamp it has now, which is never 0.
func (t *Table) Look(p int, since uint64, visit func(bits uint64, b []byte)) (stamp uint64) {
	if stamp = t.pages[p].stamp + 1; stamp != since {
		t.Each(p, p+1, visit)
	}
	return stamp
}
