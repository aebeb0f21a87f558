package queue

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A table that is filled at once and put in order is the one that is filled item by
// item; of an item that comes twice the last stands.
func TestTableOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	var one, other table
	if !one.empty() {
		t.Fatal("a new table is not empty")
	}
	for range 30_000 {
		bits := r.Uint64N(20_000) << 36 // some come twice
		b := bytes.Repeat([]byte{byte(r.Uint32())}, 1+r.IntN(40))
		one.put(bits, b)
		other.add(bits, b)
	}
	for p := range other.pages {
		other.pages[p].order()
	}
	items := 0
	one.each(0, pages, func(bits uint64, b []byte) {
		items++
		if !bytes.Equal(other.get(bits), b) {
			t.Fatalf("item %x is %x, want %x", bits, other.get(bits), b)
		}
	})
	other.each(0, pages, func(uint64, []byte) { items-- })
	if items != 0 || other.empty() {
		t.Fatalf("%d items more in one than in the other", items)
	}
}
