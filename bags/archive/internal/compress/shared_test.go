package compress

import "time"

// noise is bytes that do not compress and differ from file to file.
func noise(n int, seed uint64) []byte {
	b := make([]byte, n)
	x := seed*2654435761 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}

// text compresses about three to one.
func text(n int, seed uint64) []byte {
	b := noise(n, seed)
	for i := range b {
		b[i] = "aaaaaaeeeeetttinos rhl"[b[i]%22]
	}
	return b
}

// used is what one turn cost.
type used struct{ wall, cpu time.Duration }

func (u *used) best(v used) {
	if u.wall == 0 || v.wall < u.wall {
		u.wall = v.wall
	}
	if u.cpu == 0 || v.cpu < u.cpu {
		u.cpu = v.cpu
	}
}
