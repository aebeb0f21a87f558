package turns

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A heap gives its members back in their order, however they came in.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []Entry
		var h Heap[Entry]
		for i := range rapid.IntRange(0, 40).Draw(t, "ordered at once") {
			h = append(h, Entry{Created: rapid.Int64Range(0, 20).Draw(t, "created"), Item: uint64(i)})
		}
		want = append(want, h...)
		h.Order()
		for i := range rapid.IntRange(0, 40).Draw(t, "pushed") {
			e := Entry{Created: rapid.Int64Range(0, 20).Draw(t, "created"), Item: uint64(100 + i)}
			h.Push(e)
			want = append(want, e)
		}
		slices.SortFunc(want, Entry.Compare)
		var got []Entry
		for len(h) > 0 {
			if rapid.IntRange(0, 4).Draw(t, "later") == 0 && h[0].Created < 30 {
				i := slices.Index(want, h[0])
				h[0].Created += 30
				want[i].Created += 30
				slices.SortFunc(want[i:], Entry.Compare)
				h.Fix(0)
				continue
			}
			got = append(got, h.Pop())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v, not %v", got, want)
		}
	})
}
