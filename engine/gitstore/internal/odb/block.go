package odb

// block is memory that many short-lived objects share, which costs the collector less than one object for each.
// The zero block is ready.
type block struct{ free []byte }

const blockBytes = 16 << 10

// take gives room for n bytes; of nil it is nobody else's.
func (b *block) take(n int) []byte {
	if b == nil || n > blockBytes/4 {
		return make([]byte, 0, n)
	}
	if n > len(b.free) {
		b.free = make([]byte, blockBytes)
	}
	room := b.free[:0:n]
	b.free = b.free[n:]
	return room
}
