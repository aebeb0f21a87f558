package search

import (
	"math/rand/v2"
	"testing"
)

// Documents are unpacked as they were packed, in either form and with others written behind them, and counted packed as
// unpacked; other bytes are refused.
func TestSets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 3, 100, 5000, maxPlaces} {
		for _, most := range []int{1, 64, 8192, maxPlaces} {
			var s, other set
			for range min(n, most) {
				s.add(r.IntN(most))
				other.add(r.IntN(most))
			}
			s.remove(maxPlaces - 1)
			b := s.pack()
			var got set
			if err := got.unpack(b); err != nil || got != s {
				t.Errorf("%d of %d documents: %d come back, %v", s.count(), most, got.count(), err)
			}
			if len(b) > packBytes+2*s.count() || len(b) > packBytes+8+most/8 {
				t.Errorf("%d of %d documents take %d bytes", s.count(), most, len(b))
			}
			b = append(b, packPlaces([]uint16{maxPlaces - 1})[packBytes:]...)
			if s.add(maxPlaces - 1); got.unpack(b) != nil || got != s {
				t.Errorf("%d of %d documents do not come back with one that was written behind them", s.count(), most)
			}
			common := s
			common.and(&other)
			if n, err := other.meets(b); err != nil || n != common.count() {
				t.Errorf("%d documents in common, not %d (%v)", n, common.count(), err)
			}
			other.without(&s)
			if common.and(&other); !common.isEmpty() {
				t.Error("what was taken out is there")
			}
		}
	}
	for _, bad := range []string{"", "\x00", "\x00\x00a", "\x01\x00abcdef", "\x01\x04" + string(make([]byte, maxPlaces/8+8))} {
		var s set
		if s.unpack([]byte(bad)) == nil {
			t.Errorf("%.10q is taken for documents", bad)
		}
		if _, err := s.meets([]byte(bad)); err == nil {
			t.Errorf("%.10q is counted", bad)
		}
	}
}
