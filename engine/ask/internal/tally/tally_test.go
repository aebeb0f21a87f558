package tally

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"bagpipe/layout"
)

// shelf is a source whose pages are by the first digit.
type shelf struct {
	items  map[uint64]thing
	stamps [16]uint64
	made   int
}

type thing struct {
	created, since int64
	kin            bool
	text           string
	a, b           []string
}

func (s *shelf) put(bits uint64, t thing) {
	s.items[bits] = t
	s.stamps[bits>>52]++
}

func (s *shelf) Page(n int, since uint64, visit func(uint64, []byte, func() thing)) uint64 {
	if s.stamps[n]+1 == since {
		return since
	}
	for _, bits := range slices.Sorted(maps.Keys(s.items)) {
		if int(bits>>52) == n {
			t := s.items[bits]
			visit(bits, []byte(fmt.Sprint(t)), func() thing { s.made++; return t })
		}
	}
	return s.stamps[n] + 1
}

// What a table counts and lists is what looking at every item tells, whatever changes between.
func TestTableAgainstEveryItem(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 1))
	s := &shelf{items: map[uint64]thing{}}
	table := New(s, 16, []string{"a", "b"}, func(x thing) Row {
		return Row{Created: x.created, Since: x.since, Kin: x.kin, Text: x.text, Has: [][]string{slices.Clone(x.a), slices.Clone(x.b)}}
	})
	some := func(n int) (out []string) {
		for range r.IntN(n) {
			if v := fmt.Sprint("v", r.IntN(4)); !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
		return out
	}
	for round := range 200 {
		for range 20 {
			bits := uint64(r.IntN(300)) << 44
			if r.IntN(8) == 0 {
				delete(s.items, bits)
				s.stamps[bits>>52]++
			} else {
				s.put(bits, thing{created: int64(r.IntN(40)), since: int64(r.IntN(100)), kin: r.IntN(5) == 0, text: fmt.Sprint("t", r.IntN(30)), a: some(2), b: some(4)})
			}
		}
		table.Follow()
		before := s.made
		if table.Follow(); s.made != before {
			t.Fatal("what did not change was made again")
		}
		wanted := []string{fmt.Sprint("v", r.IntN(4)), fmt.Sprint("v", r.IntN(4))}
		fits := func(has []string) bool {
			return slices.ContainsFunc(has, func(v string) bool { return slices.Contains(wanted, v) })
		}
		w := Wanted{Ages: Ages{Now: 100, Most: []int64{30, 60, 1 << 60}}}
		byA, byB, text := r.IntN(2) == 0, r.IntN(2) == 0, ""
		if byA {
			w.Lets = append(w.Lets, Let{Column: table.Column("a"), Fits: fits, Chosen: true})
		}
		if byB {
			w.Lets = append(w.Lets, Let{Column: table.Column("b"), Fits: fits})
		}
		if r.IntN(3) == 0 {
			text = fmt.Sprint(r.IntN(3))
			w.Text = text
		}
		var all []uint64
		values := map[string]int{}
		for bits, x := range s.items {
			id := layout.ItemIDOf(bits)
			if byB && !fits(x.b) || text != "" && !strings.Contains(x.text, text) && !strings.HasPrefix(string(id), text) {
				continue
			}
			for _, v := range x.a {
				values[v]++ // a is chosen: as if it let all through
			}
			if !byA || fits(x.a) {
				all = append(all, bits)
			}
		}
		n, counts := table.Count(w)
		if n != len(all) {
			t.Fatalf("round %d: %d items, want %d", round, n, len(all))
		}
		for _, c := range counts {
			if c.Column == 0 && values[c.Value] != c.Items {
				t.Fatalf("round %d: %s in a: %d, want %d", round, c.Value, c.Items, values[c.Value])
			}
		}
		line := fmt.Sprint("t", r.IntN(30))
		lined := 0
		for _, x := range s.items {
			if x.text == line {
				lined++
			}
		}
		if found, whole := table.WithLine(1000, line, "nothing"); !whole || len(found) != lined {
			t.Fatalf("round %d: %d items with %s, want %d", round, len(found), line, lined)
		}
		slices.SortFunc(all, func(a, b uint64) int {
			x, y := s.items[a], s.items[b]
			return slices.Compare([]int64{x.created, map[bool]int64{true: 1}[x.kin], int64(a)}, []int64{y.created, map[bool]int64{true: 1}[y.kin], int64(b)})
		})
		w.Lets = slices.Clone(w.Lets)
		var got []uint64
		var after Place
		for most := 7; ; most *= 2 {
			places := table.Oldest(w, after, most)
			for _, p := range places {
				if len(got) == 0 || !slices.Contains(got, p.Item.Bits()) {
					got = append(got, p.Item.Bits())
				}
			}
			if len(places) < most {
				break
			}
			after = places[len(places)-1]
		}
		if !slices.Equal(got, all) {
			t.Fatalf("round %d: listed %d, want %d\n%x\n%x", round, len(got), len(all), got, all)
		}
	}
}
