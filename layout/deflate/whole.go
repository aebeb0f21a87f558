package deflate

import (
	"slices"
	"sync"
)

// shortBits makes tables that are made soon: objects are short.
const shortBits = 9

var decoders = sync.Pool{New: func() any { return newDecoder(shortBits) }}

// Whole decodes the stream at the head of src, which holds size bytes, into the memory of
// buf where it has room for some bytes more. used is the stream's length in src. ok is
// false when src holds no whole stream of that size.
func Whole(buf []byte, size int, src []byte) (out []byte, used int, ok bool) {
	buf = slices.Grow(buf[:0], size+slack)[:size+slack]
	d := decoders.Get().(*decoder)
	d.in, d.pos, d.out, d.made = src, 0, buf, 0
	d.reset()
	need, err := d.decode(true)
	made, used := d.made, d.pos
	d.in, d.out = nil, nil
	decoders.Put(d)
	return buf[:size], used, err == nil && need == wantNothing && made == size
}
