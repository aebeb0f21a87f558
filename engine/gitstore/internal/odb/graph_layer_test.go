package odb

import "testing"

// However commits come, in sevens of small layers below larger ones, the chain stays
// one that git can read: it counts the layers below one in a byte.
func TestTheChainStaysShort(t *testing.T) {
	g := &Graph{}
	longest := 0
	add := func(n int) {
		keep := g.mergeFrom(n)
		l := &layer{n: uint32(n)}
		for _, old := range g.layers[keep:] {
			l.n += old.n
		}
		g.layers = append(g.layers[:keep:keep], l)
		longest = max(longest, len(g.layers))
	}
	var grow func(n int)
	grow = func(n int) {
		if n == 0 {
			return
		}
		for range 7 {
			grow(n / 20)
		}
		add(n)
	}
	for range 7 {
		grow(20 * 20 * 20)
	}
	if longest > maxLayers {
		t.Errorf("%d layers", longest)
	}
}
