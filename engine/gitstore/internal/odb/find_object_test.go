package odb

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

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

// TestFindInALargeIndex holds the lookups in an index that is not in memory, asked
// where it lies and mapped, against the names it has: even ones, and uneven ones.
func TestFindInALargeIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, clusters := range []int{0, 1, 40} {
		var names []Hash
		for i := range 20_000 {
			var h Hash
			for k := range h {
				h[k] = byte(r.Uint32())
			}
			if clusters > 0 { // all alike but for their ends
				copy(h[:16], []byte{7, byte(i % clusters), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14})
			}
			names = append(names, h)
		}
		slices.SortFunc(names, func(a, b Hash) int { return bytes.Compare(a[:], b[:]) })
		p := indexOf(t, names)
		for round := range 2 {
			for i, h := range names {
				if off, ok, err := p.find(h); off != int64(1000+i) || !ok || err != nil {
					t.Fatalf("%d clusters: name %d: at %d, %v, %v", clusters, i, off, ok, err)
				}
				h[19]++
				if _, there := slices.BinarySearchFunc(names, h, func(a, b Hash) int { return bytes.Compare(a[:], b[:]) }); !there {
					if _, ok, err := p.find(h); ok || err != nil {
						t.Fatalf("%d clusters: a name that is not there: %v, %v", clusters, ok, err)
					}
				}
				if i == mapFrom/4 && p.mapped != nil || i == len(names)-1 && p.mapped == nil {
					t.Fatalf("round %d, after %d lookups: mapped %v", round, 2*i, p.mapped != nil)
				}
			}
			p.release()
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}
}

// indexOf writes an index and opens it as one of those that stay open.
func indexOf(t *testing.T, names []Hash) *pack {
	t.Helper()
	b := []byte("\xfftOc\x00\x00\x00\x02")
	n := 0
	for first := range 256 {
		for n < len(names) && int(names[n][0]) == first {
			n++
		}
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	for _, h := range names {
		b = append(b, h[:]...)
	}
	b = append(b, make([]byte, 4*len(names))...)
	for i := range names {
		b = binary.BigEndian.AppendUint32(b, uint32(1000+i))
	}
	b = append(b, make([]byte, 40)...)
	base := filepath.Join(t.TempDir(), "pack")
	if err := os.WriteFile(base+".idx", b, 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := openPack(base, 1)
	if err != nil {
		t.Fatal(err)
	}
	p.use.Store(1)
	return p
}
