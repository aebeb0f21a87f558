package tally

import (
	"bytes"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

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
	chosen []bool   // likewise: which of them are
	text   []byte
	prefix uint64 // of identifiers, when digits is not 0
	digits int
	none   bool
	room   room
}

func (t *Table[Item]) sieve(w Wanted) *sieve {
	s := &sieve{w: w, text: []byte(w.Text)}
	for _, l := range w.Lets {
		if l.Column < 0 {
			s.none = true
			continue
		}
		fits := make([]bool, len(t.columns[l.Column].sets))
		for n, values := range t.columns[l.Column].sets {
			fits[n] = l.Fits(values)
		}
		s.at, s.fits, s.chosen = append(s.at, l.Column), append(s.fits, fits), append(s.chosen, l.Chosen)
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
	out     = int16(-2) // it is not let through
	through = int16(-1) // by all
	byAge   = int16(1 << 14)
)

// judge tells whether a row is let through, or by all columns but one that is chosen, whose
// place in at it gives.
func (s *sieve) judge(p *page, i int) int16 {
	but := through
	for k, c := range s.at {
		if !s.fits[k][p.columns[c].at(i)] {
			but = without(but, int16(k), s.chosen[k])
		}
	}
	return s.rest(p, i, but)
}

// judgeAll judges each row of a page, column by column.
func (s *sieve) judgeAll(p *page, buts []int16) []int16 {
	buts = s.judgeColumns(p, buts)
	if s.plain() {
		return buts
	}
	for i, but := range buts {
		buts[i] = s.rest(p, i, but)
	}
	return buts
}

// judgeColumns judges each row of a page by its columns alone.
func (s *sieve) judgeColumns(p *page, buts []int16) []int16 {
	buts = slices.Grow(buts[:0], p.rows)[:p.rows]
	for i := range buts {
		buts[i] = through
	}
	for k, c := range s.at {
		p.columns[c].sift(&s.room, s.fits[k], s.chosen[k], int16(k), buts)
	}
	return buts
}

// without is where a row falls that a column does not let through, and that fell elsewhere before.
func without(but, k int16, chosen bool) int16 {
	if but == through && chosen {
		return k
	}
	return out
}

// plain reports whether columns alone narrow.
func (s *sieve) plain() bool {
	return s.w.Ages.Only == nil && len(s.text) == 0 && s.w.Only == nil && s.w.Also == nil
}

// rest judges by all that is not a column.
func (s *sieve) rest(p *page, i int, but int16) int16 {
	if but == out {
		return out
	}
	if a := &s.w.Ages; a.Only != nil && !a.Only[a.bucket(p.since[i])] {
		if but != through || !a.Chosen {
			return out
		}
		but = byAge
	}
	if len(s.text) > 0 && !s.hasText(p, i) ||
		s.w.Only != nil && !s.w.Only[idOf(p.ids[i])] ||
		s.w.Also != nil && !s.w.Also(idOf(p.ids[i])) {
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
	sums, ages := make([][]int, len(t.columns)), make([]int, len(w.Ages.Most))
	if len(s.at) == 0 && s.plain() { // what all have is known
		items = t.items
		for c, col := range t.columns {
			sums[c] = col.items
		}
		for n := range t.pages {
			w.Ages.add(ages, t.pages[n].since)
		}
	} else {
		for c, col := range t.columns {
			sums[c] = make([]int, len(col.sets))
		}
		items = t.sift(s, sums, ages)
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

// add counts when items moved last.
func (a *Ages) add(ages []int, since []int64) {
	if len(ages) == 0 {
		return
	}
	for _, at := range since {
		ages[a.bucket(at)]++
	}
}

// sift counts the sets of each column, and the ages, of what a sieve lets through; of many items
// each processor counts a part.
func (t *Table[Item]) sift(s *sieve, sums [][]int, ages []int) (items int) {
	const few = 100
	parts := min(runtime.GOMAXPROCS(0), 1+t.items/few)
	found, of, all := make([]int, parts), make([][][]int, parts), append(slices.Clone(sums), ages)
	var counting sync.WaitGroup
	for n := range parts {
		own := *s // its room is one goroutine's
		for _, sum := range all {
			of[n] = append(of[n], make([]int, len(sum)))
		}
		counting.Go(func() {
			found[n] = own.siftPages(t.pages[n*len(t.pages)/parts:(n+1)*len(t.pages)/parts], of[n][:len(sums)], of[n][len(sums)])
		})
	}
	counting.Wait()
	for n := range parts {
		items += found[n]
		for c, sum := range all {
			for i, more := range of[n][c] {
				sum[i] += more
			}
		}
	}
	return items
}

func (s *sieve) siftPages(pages []page, sums [][]int, ages []int) (items int) {
	var buts []int16
	var rows []int32
	for n := range pages {
		p := &pages[n]
		buts, rows = s.judgeAll(p, buts), rows[:0]
		for i, but := range buts {
			switch but {
			case out:
			case through:
				rows = append(rows, int32(i))
			case byAge:
				ages[s.w.Ages.bucket(p.since[i])]++
			default:
				c := s.at[but]
				sums[c][p.columns[c].at(i)]++
			}
		}
		items += len(rows)
		if len(rows) == 0 {
			continue
		}
		for c, sum := range sums {
			p.columns[c].add(&s.room, rows, sum)
		}
		if len(ages) > 0 {
			for _, i := range rows {
				ages[s.w.Ages.bucket(p.since[i])]++
			}
		}
	}
	return items
}

// WithLine gives the items whose text has one of some lines, in small letters; all is false where there
// are more than most.
func (t *Table[Item]) WithLine(most int, lines ...string) (found []layout.ItemID, all bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for n := range t.pages {
		p := &t.pages[n]
		for _, line := range lines {
			for at := 0; line != ""; at++ {
				next := bytes.Index(p.text[at:], []byte(line))
				if next < 0 {
					break
				}
				at += next
				i, _ := slices.BinarySearch(p.ends, uint32(at+1)) // the row whose text ends there or behind
				text := string(p.textAt(i))
				if id := idOf(p.ids[i]); slices.Contains(strings.Split(text, "\n"), line) && !slices.Contains(found, id) {
					if len(found) == most {
						return nil, false
					}
					found = append(found, id)
				}
			}
		}
	}
	return found, true
}

// Place is where an item stands in the order of ages.
type Place struct {
	Item    layout.ItemID
	Created int64 // ms
	Kin     bool
}

// SameInstant reports whether both are kin of one instant, which have an order of their own.
func (p Place) SameInstant(as Place) bool { return p.Kin && as.Kin && p.Created == as.Created }

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
	from := entry{age: math.MinInt64}
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
	const young = math.MaxInt64
	limit := entry{young, 0} // what comes after it is none of them
	cut := func() {
		slices.SortFunc(all, compare)
		n := most
		for n < len(all) && all[n].age&1 == 1 && all[n].age == all[most-1].age {
			n++
		}
		if n < len(all) {
			all, limit = all[:n], all[n-1]
		}
		if limit.age&1 == 1 { // kin of one instant are given all
			limit.bits = 1<<64 - 1
		}
	}
	room := 2 * most
	var buts []int16
	for n := range t.pages {
		p := &t.pages[n]
		many := limit.age == young && len(s.at) > 0 // as long as too few were found, most rows of a page are judged
		if many {
			buts = s.judgeColumns(p, buts)
		}
		for i, age := range p.age {
			if uint64(age)-uint64(from.age) > uint64(limit.age)-uint64(from.age) { // older or younger: one branch, which nearly all take
				continue
			}
			if age == limit.age && p.ids[i] > limit.bits || age == from.age && age&1 == 0 && p.ids[i] <= from.bits && after.Item != "" {
				continue
			}
			if many && (buts[i] != through || s.rest(p, i, through) != through) || !many && s.judge(p, i) != through {
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
