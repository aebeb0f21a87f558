package tally

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"bagpipe/layout"
)

// Row is what is known of one item.
type Row struct {
	Created, Since int64 // ms
	Kin            bool  // of one instant, it comes after those that are none
	Text           string
	Has            [][]string // of each column its values
}

// Source is where items are kept.
type Source[Item any] interface {
	// Page visits the items of a page in the order of their numbers, unless nothing of it
	// changed since it had the stamp; 0: it was never looked at. get is good for the visit.
	Page(page int, since uint64, visit func(bits uint64, records []byte, get func() Item)) (stamp uint64)
}

// Table is the rows of all items.
type Table[Item any] struct {
	mu      sync.RWMutex // guards all below
	source  Source[Item]
	row     func(Item) Row
	columns []*column
	pages   []page
	items   int
	seed    maphash.Seed
}

// column numbers the sets of values that items have.
type column struct {
	name   string
	sets   [][]string
	number map[string]uint32
	items  []int // of each set, how many items have it
}

// page holds the rows of some items side by side, in the order of their numbers.
type page struct {
	stamp   uint64
	rows    int
	ids     []uint64
	sums    []uint64 // of what the row was made of
	age     []int64  // Created and Kin
	since   []int64
	columns []cells
	text    []byte
	ends    []uint32 // of each row's text
}

// New makes a table of columns; row tells of an item, from any goroutine.
func New[Item any](source Source[Item], pages int, columns []string, row func(Item) Row) *Table[Item] {
	t := &Table[Item]{source: source, row: row, pages: make([]page, pages), seed: maphash.MakeSeed()}
	for _, name := range columns {
		t.columns = append(t.columns, &column{name: name, number: map[string]uint32{}})
	}
	return t
}

// Column is the place of a column; -1: there is none.
func (t *Table[Item]) Column(name string) int {
	return slices.IndexFunc(t.columns, func(c *column) bool { return c.name == name })
}

// Follow takes in what changed.
func (t *Table[Item]) Follow() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.pages {
		t.follow(p)
	}
	const few = 1 << 16
	for _, c := range t.columns { // sets that no item has any more are forgotten with the rows
		if len(c.sets) > 2*t.items+few {
			t.forget()
			return
		}
	}
}

// forget makes every row anew. The lock is held.
func (t *Table[Item]) forget() {
	for _, c := range t.columns {
		c.sets, c.number, c.items = nil, map[string]uint32{}, nil
	}
	t.items = 0
	for p := range t.pages {
		t.pages[p] = page{}
		t.follow(p)
	}
}

// follow takes in one page. Rows are made after the visit: to make one asks the source.
func (t *Table[Item]) follow(n int) {
	was := &t.pages[n]
	type found struct {
		bits, sum uint64
		at        int // its row, where it did not change; else -1
		item      Item
	}
	var all []found
	at := 0
	stamp := t.source.Page(n, was.stamp, func(bits uint64, records []byte, get func() Item) {
		f := found{bits: bits, sum: maphash.Bytes(t.seed, records), at: -1}
		for at < len(was.ids) && was.ids[at] < bits {
			at++
		}
		if at < len(was.ids) && was.ids[at] == bits && was.sums[at] == f.sum {
			f.at = at
		} else {
			f.item = get()
		}
		all = append(all, f)
	})
	if stamp == was.stamp {
		return
	}
	numbers := make([]uint32, len(all)*len(t.columns)) // of all rows those in the first column, then in the second, …
	now := page{stamp: stamp, rows: len(all), ids: make([]uint64, 0, len(all)), sums: make([]uint64, 0, len(all)), age: make([]int64, 0, len(all)), since: make([]int64, 0, len(all)),
		columns: make([]cells, len(t.columns)), text: make([]byte, 0, len(was.text)), ends: make([]uint32, 0, len(all))}
	if was.rows > 0 {
		for c, col := range t.columns {
			for i := range was.rows {
				col.items[was.columns[c].at(i)]--
			}
		}
	}
	for i, f := range all {
		now.ids, now.sums = append(now.ids, f.bits), append(now.sums, f.sum)
		if f.at >= 0 {
			now.age, now.since = append(now.age, was.age[f.at]), append(now.since, was.since[f.at])
			for c := range t.columns {
				numbers[c*len(all)+i] = was.columns[c].at(f.at)
			}
			now.text = append(now.text, was.textAt(f.at)...)
		} else {
			r := t.row(f.item)
			age := r.Created << 1
			if r.Kin {
				age |= 1
			}
			now.age, now.since = append(now.age, age), append(now.since, r.Since)
			for c := range t.columns {
				numbers[c*len(all)+i] = t.columns[c].numberOf(r.Has[c])
			}
			now.text = append(now.text, r.Text...)
		}
		now.ends = append(now.ends, uint32(len(now.text)))
	}
	for c, col := range t.columns {
		column := numbers[c*len(all) : (c+1)*len(all)]
		now.columns[c] = cellsOf(column)
		for _, number := range column {
			col.items[number]++
		}
	}
	t.items += len(now.ids) - len(was.ids)
	*was = now
}

func (p *page) textAt(i int) []byte {
	if i == 0 {
		return p.text[:p.ends[0]]
	}
	return p.text[p.ends[i-1]:p.ends[i]]
}

func (c *column) numberOf(values []string) uint32 {
	slices.Sort(values)
	values = slices.Compact(values)
	key := strings.Join(values, "\x00")
	if len(values) == 0 {
		key = "\x00\x00" // no set of values has that key
	}
	n, ok := c.number[key]
	if !ok {
		n = uint32(len(c.sets))
		kept := make([]string, len(values))
		for i, v := range values {
			kept[i] = strings.Clone(v)
		}
		c.sets, c.number[key], c.items = append(c.sets, kept), n, append(c.items, 0)
	}
	return n
}

// idOf is an item's identifier.
func idOf(bits uint64) layout.ItemID { return layout.ItemIDOf(bits) }
