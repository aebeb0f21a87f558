package odb

import "testing"

// Whatever the list and the pack near which the search begins, each of the others
// is asked once, and the nearest first.
func TestNearest(t *testing.T) {
	for n := range 6 {
		packs := make([]*pack, n)
		for i := range packs {
			packs[i] = &pack{id: uint64(i)}
			packs[i].at.Store(int32(i))
		}
		gone := &pack{id: 99}
		gone.at.Store(3)
		for _, near := range append([]*pack{nil, gone}, packs...) {
			asked := map[*pack]int{}
			for p := range nearest(packs, near) {
				asked[p]++
			}
			for _, p := range packs {
				want := 1
				if p == near {
					want = 0
				}
				if asked[p] != want {
					t.Errorf("of %d packs, near %v: pack %d asked %d times", n, near, p.id, asked[p])
				}
			}
		}
	}
	packs := make([]*pack, 6)
	for i := range packs {
		packs[i] = &pack{id: uint64(i)}
		packs[i].at.Store(int32(i))
	}
	var order []uint64
	for p := range nearest(packs, packs[3]) {
		order = append(order, p.id)
	}
	if want := [5]uint64{0, 2, 4, 1, 5}; [5]uint64(order) != want {
		t.Errorf("asked in the order %v, want %v", order, want)
	}
}
