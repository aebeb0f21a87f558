package packed

import (
	"testing"

	"bagpipe/layout"

	"pgregory.net/rapid"
)

// The order of ages is an order.
func TestCompareAge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var items []*Item
		for range 3 {
			it := &Item{ID: layout.ItemIDOf(rapid.Uint64Range(0, 3).Draw(t, "id")), Created: t0}
			if rapid.Bool().Draw(t, "child") {
				it.Parent = &layout.Parent{Item: layout.ItemIDOf(rapid.Uint64Range(0, 1).Draw(t, "parent")), Name: rapid.StringMatching(`[a0-2]{0,4}`).Draw(t, "name")}
			}
			items = append(items, it)
		}
		a, b, c := items[0], items[1], items[2]
		if CompareAge(a, b) != -CompareAge(b, a) {
			t.Fatalf("%v and %v", a.Parent, b.Parent)
		}
		if CompareAge(a, b) <= 0 && CompareAge(b, c) <= 0 && CompareAge(a, c) > 0 {
			t.Fatalf("%v %v, %v %v, %v %v", a.ID, a.Parent, b.ID, b.Parent, c.ID, c.Parent)
		}
	})
}
