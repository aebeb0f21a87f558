package tally

import (
	"fmt"
	"testing"
)

// BenchmarkCount counts and lists items with two values chosen, in twelve columns.
func BenchmarkCount(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkCount(b, n) })
	}
}

func benchmarkCount(b *testing.B, n int) {
	s := &shelf{items: map[uint64]thing{}}
	wide := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}
	table := New(s, 4096, wide, func(x thing) Row {
		r := Row{Created: x.created, Since: x.since, Has: make([][]string, len(wide))}
		for c := range wide {
			r.Has[c] = []string{fmt.Sprint("v", x.created%int64(c+2))}
		}
		return r
	})
	for p := range table.pages {
		pg := &table.pages[p]
		numbers := make([][]uint32, len(wide))
		pg.rows = n / len(table.pages)
		for i := range pg.rows {
			x := thing{created: int64(i), since: int64(i * 7 % 1000)}
			pg.ids, pg.sums, pg.age, pg.since, pg.ends = append(pg.ids, uint64(p)<<44|uint64(i)), append(pg.sums, 0), append(pg.age, int64(uint64(i*4096+p)*0x9E3779B97F4A7C15>>40)<<1), append(pg.since, x.since), append(pg.ends, 0)
			for c, has := range table.row(x).Has {
				number := table.columns[c].numberOf(has)
				numbers[c] = append(numbers[c], number)
				table.columns[c].items[number]++
			}
		}
		for _, column := range numbers {
			pg.columns = append(pg.columns, cellsOf(column))
		}
		table.items += pg.rows
	}
	is := func(v string) func([]string) bool { return func(has []string) bool { return has[0] == v } }
	w := Wanted{Ages: Ages{Now: 1000, Most: []int64{30, 60, 200, 500, 1 << 60}}, Lets: []Let{{Column: 0, Fits: is("v1"), Chosen: true}, {Column: 1, Fits: is("v2"), Chosen: true}}}
	for _, c := range []struct {
		name string
		w    Wanted
	}{{"all", Wanted{Ages: w.Ages}}, {"two chosen", w}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if n, _ := table.Count(c.w); n == 0 {
					b.Fatal("none")
				}
			}
		})
		for name, after := range map[string]Place{"": {}, " behind half": {Item: idOf(1), Created: 1 << 23}} {
			b.Run("the oldest of "+c.name+name, func(b *testing.B) {
				for b.Loop() {
					if len(table.Oldest(c.w, after, 128)) == 0 {
						b.Fatal("none")
					}
				}
			})
		}
	}
}
