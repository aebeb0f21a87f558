package tally

import (
	"bytes"
	"slices"
	"strings"

	"bagpipe/layout"
)

// Let lets the items through that have certain sets of values in a column.
type Let struct {
	Column int // -1: no item has it
	Fits   func(values []string) bool
	// Chosen: of this column, values are counted as if it let all through.
	Chosen bool
}

// Ages parts items by since when they have not moved.
type Ages struct {
	Now    int64   // ms
	Most   []int64 // ms, ascending; the last holds all
	Only   []bool  // nil: all
	Chosen bool
}

// Wanted narrows what is counted or listed.
type Wanted struct {
	Lets []Let
	Ages Ages
	Text string                   // in small letters: in the text of an item, or the beginning of its identifier
	Only map[layout.ItemID]bool   // nil: all
	Also func(layout.ItemID) bool // asked last; nil: all. It must not ask the table.
}

// sieve is a Wanted as the sets of one moment are concerned.
type sieve struct {
	w      Wanted
	at     []int    // columns
	fits   [][]bool // of each of them, by the number of the set
	chosen []int    // places in at of those that are chosen
	text   []byte
	prefix uint64 // of identifiers, when digits is not 0
	digits int
	none   bool
}

func (t *Table[Item]) sieve(w Wanted) sieve {
	s := sieve{w: w, text: []byte(w.Text)}
	for _, l := range w.Lets {
		if l.Column < 0 {
			s.none = true
			continue
		}
		fits := make([]bool, len(t.columns[l.Column].sets))
		for n, values := range t.columns[l.Column].sets {
			fits[n] = l.Fits(values)
		}
		if l.Chosen {
			s.chosen = append(s.chosen, len(s.at))
		}
		s.at, s.fits = append(s.at, l.Column), append(s.fits, fits)
	}
	if layout.IsItemPrefix(w.Text) {
		for _, d := range []byte(w.Text[:min(len(w.Text), layout.ItemIDLen-1)]) { // the last digit follows from the others
			s.prefix = s.prefix<<4 | uint64(strings.IndexByte("0123456789abcdef", d))
		}
		s.digits = min(len(w.Text), layout.ItemIDLen-1)
	}
	return s
}

// bucket is the part of ages that a row is in.
func (a *Ages) bucket(since int64) int {
	for i, most := range a.Most {
		if a.Now-since < most {
			return i
		}
	}
	return len(a.Most) - 1
}

// Where an item falls that is let through by all but one chosen column.
const (
	out     = -2 // it is not let through
	through = -1 // by all
	byAge   = 1 << 20
)

// judge tells whether a row is let through, or by all columns but one that is chosen, whose
// place in at it gives.
func (s *sieve) judge(p *page, i, wide int) int {
	row, but := p.numbers[i*wide:(i+1)*wide], through
	for k, c := range s.at {
		if s.fits[k][row[c]] {
			continue
		}
		if but != through || !slices.Contains(s.chosen, k) {
			return out
		}
		but = k
	}
	if a := &s.w.Ages; a.Only != nil && !a.Only[a.bucket(p.since[i])] {
		if but != through || !a.Chosen {
			return out
		}
		but = byAge
	}
	if len(s.text) > 0 && !s.hasText(p, i) {
		return out
	}
	if s.w.Only != nil && !s.w.Only[idOf(p.ids[i])] {
		return out
	}
	if s.w.Also != nil && !s.w.Also(idOf(p.ids[i])) {
		return out
	}
	return but
}

func (s *sieve) hasText(p *page, i int) bool {
	if s.digits > 0 && p.ids[i]>>(4*(layout.ItemIDLen-1-s.digits)) == s.prefix && (len(s.text) < layout.ItemIDLen || string(idOf(p.ids[i])) == string(s.text)) {
		return true
	}
	return bytes.Contains(p.textAt(i), s.text)
}

// Count is how many items have a value in a column; of ages, the column is -1 and the value the
// part.
type Count struct {
	Column int
	Value  string
	Part   int
	Items  int
}

// Count counts the items that are let through, and their values in each column. Of a chosen column it
// counts what all the others let through.
func (t *Table[Item]) Count(w Wanted) (items int, counts []Count) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.sieve(w)
	if s.none {
		return 0, nil
	}
	wide := len(t.columns)
	sums := make([][]int, wide)
	for c := range sums {
		sums[c] = make([]int, len(t.columns[c].sets))
	}
	ages := make([]int, len(w.Ages.Most))
	beside := make([]int, wide) // by the column, the place in at of its Let, if it is chosen; else -1
	for c := range beside {
		beside[c] = -1
	}
	for _, k := range s.chosen {
		beside[s.at[k]] = k
	}
	for n := range t.pages {
		p := &t.pages[n]
		for i := range p.ids {
			switch but := s.judge(p, i, wide); but {
			case out:
			case through:
				items++
				row := p.numbers[i*wide : (i+1)*wide]
				for c, number := range row {
					sums[c][number]++
				}
				if len(ages) > 0 {
					ages[w.Ages.bucket(p.since[i])]++
				}
			case byAge:
				ages[w.Ages.bucket(p.since[i])]++
			default:
				c := s.at[but]
				sums[c][p.numbers[i*wide+c]]++
			}
		}
	}
	for c, col := range t.columns {
		byValue := map[string]int{}
		for n, sum := range sums[c] {
			if sum > 0 {
				for _, v := range col.sets[n] {
					byValue[v] += sum
				}
			}
		}
		for v, sum := range byValue {
			counts = append(counts, Count{Column: c, Value: v, Items: sum})
		}
	}
	for part, sum := range ages {
		if sum > 0 {
			counts = append(counts, Count{Column: -1, Part: part, Items: sum})
		}
	}
	return items, counts
}

// Place is where an item stands in the order of ages.
type Place struct {
	Item    layout.ItemID
	Created int64 // ms
	Kin     bool
}

func (p Place) age() int64 {
	if p.Kin {
		return p.Created<<1 | 1
	}
	return p.Created << 1
}

// Oldest gives at least so many of the items that are let through, if there are as many, the
// oldest first: those that come after a place or at it. Kin of one instant, which have an order of their own, are given all or
// none, by their identifiers.
func (t *Table[Item]) Oldest(w Wanted, after Place, most int) (found []Place) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.sieve(w)
	if s.none {
		return nil
	}
	type entry struct {
		age  int64
		bits uint64
	}
	var from entry
	if after.Item != "" {
		from = entry{after.age(), after.Item.Bits()}
	}
	compare := func(a, b entry) int {
		if a.age != b.age {
			return int(min(max(a.age-b.age, -1), 1))
		}
		switch {
		case a.bits < b.bits:
			return -1
		case a.bits > b.bits:
			return 1
		}
		return 0
	}
	var all []entry
	limit := int64(1<<63 - 1)
	cut := func() {
		slices.SortFunc(all, compare)
		n := most
		for n < len(all) && all[n].age&1 == 1 && all[n].age == all[most-1].age {
			n++
		}
		if n < len(all) {
			all, limit = all[:n], all[n-1].age
		}
	}
	wide := len(t.columns)
	room := 4*most + 1024
	for n := range t.pages {
		p := &t.pages[n]
		for i, age := range p.age {
			if age > limit || age < from.age || age == from.age && age&1 == 0 && p.ids[i] <= from.bits && after.Item != "" {
				continue
			}
			if s.judge(p, i, wide) != through {
				continue
			}
			if all = append(all, entry{age, p.ids[i]}); len(all) >= room {
				cut()
				room = max(room, 2*len(all))
			}
		}
	}
	cut()
	for _, e := range all {
		found = append(found, Place{Item: idOf(e.bits), Created: e.age >> 1, Kin: e.age&1 == 1})
	}
	return found
}
