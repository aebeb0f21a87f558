package packed

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A table that is filled at once and put in order is the one that is filled item by
// item; of an item that comes twice the last stands.
func TestTableOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	var one, other Table
	if !one.Empty() {
		t.Fatal("a new table is not empty")
	}
	for range 30_000 {
		bits := r.Uint64N(20_000) << 36 // some come twice
		b := bytes.Repeat([]byte{byte(r.Uint32())}, 1+r.IntN(40))
		one.Put(bits, b)
		other.Add(bits, b)
	}
	other.Sort(0, Pages)
	items := 0
	one.Each(0, Pages, func(bits uint64, b []byte) {
		items++
		if !bytes.Equal(other.Get(bits), b) {
			t.Fatalf("item %x is %x, want %x", bits, other.Get(bits), b)
		}
	})
	other.Each(0, Pages, func(uint64, []byte) { items-- })
	if items != 0 || other.Empty() {
		t.Fatalf("%d items more in one than in the other", items)
	}
}
