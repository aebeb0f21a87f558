package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestStandsFitIntoPages: pieces have where a word stands, however often and in however many documents it does, whole documents each; each
// fits into a page, and one that is cut is seen to be.
func TestStandsFitIntoPages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var everywhere set
	for i := range everywhere {
		everywhere[i] = math.MaxUint64
	}
	for range 300 {
		var all []stand
		numbers, gap := 1+r.IntN(1<<r.IntN(9)), 1<<r.IntN(12)
		for place := r.IntN(gap); place < maxPlaces && len(all) < 40_000; place += 1 + r.IntN(gap) {
			for number := r.IntN(256); number < 256 && len(all) < 40_000; number += 1 + r.IntN(256/numbers+1) {
				all = append(all, standOf(place, uint8(number)))
			}
		}
		var read []stand
		for rest := all; len(rest) > 0; {
			var piece []byte
			before := len(rest)
			if piece, rest = packStands(rest); len(piece) > pieceBytes || len(piece) > packBytes+standBytes*(before-len(rest)) {
				t.Fatalf("a piece of %d has %d bytes", before-len(rest), len(piece))
			}
			begun := len(read)
			some, err := standsOf(piece, &everywhere)
			if err != nil {
				t.Fatal(err)
			}
			read = append(read, some...)
			var few set
			for range r.IntN(100) {
				few.add(some[r.IntN(len(some))].place())
			}
			want := slices.DeleteFunc(slices.Clone(some), func(s stand) bool { return !few.has(s.place()) })
			if of, err := standsOf(piece, &few); err != nil || !slices.Equal(of, want) {
				t.Fatalf("of %d documents %d are read, not %d (%v)", few.count(), len(of), len(want), err)
			}
			if len(rest) > 0 && rest[0].place() == read[len(read)-1].place() {
				t.Fatal("a document is in two pieces")
			}
			if cut := r.IntN(len(piece)); cut > packBytes || cut < packBytes {
				if some, err := standsOf(piece[:cut], &everywhere); err == nil && len(some) >= len(read)-begun {
					t.Fatalf("%d bytes of %d are taken for all", cut, len(piece))
				}
			}
		}
		if !slices.Equal(read, all) {
			t.Fatalf("%d were packed, and %d read", len(all), len(read))
		}
	}
}

// standsOf gives where a piece has its word in some documents.
func standsOf(piece []byte, of *set) (all []stand, err error) {
	err = eachStanding(piece, of, func(place int, numbers []byte) {
		for _, n := range numbers {
			all = append(all, standOf(place, n))
		}
	})
	return all, err
}
