package odb

import (
	"encoding/binary"
	"hash/adler32"
	"slices"
	"sync"

	"bagpipe/layout/deflate"
)

// The rules are: this is the short way through a zlib stream (RFC 1950) that stands
// whole in memory and whose size is known, as a scan reads millions of them of a
// kilobyte each. It gives the bytes, or says that it cannot: on anything that is
// damaged, cut off or out of the ordinary the general way is asked, which names the
// fault. So it may refuse what it likes, and must never give other bytes.

// litBits makes tables that are made soon: objects are short.
const litBits = 9

var decoders = sync.Pool{New: func() any { return deflate.New(litBits) }}

// inflateWhole gives the size bytes that the zlib stream at the head of src holds, in
// the memory of buf where it has room; false: it does not hold exactly that, or the
// general way has to look at it.
func inflateWhole(buf []byte, size int, src []byte) ([]byte, bool) {
	const head, tail = 2, 4
	if len(src) < head+tail || src[0]&15 != 8 || src[0]>>4 > 7 || src[1]&0x20 != 0 || (int(src[0])<<8|int(src[1]))%31 != 0 {
		return nil, false
	}
	buf = slices.Grow(buf[:0], size+deflate.Slack)[:size+deflate.Slack]
	d := decoders.Get().(*deflate.Decoder)
	d.In, d.Pos, d.Out, d.Made = src, head, buf, 0
	d.Reset()
	want, err := d.Decode(true)
	made, at := d.Made, d.Pos
	d.In, d.Out = nil, nil
	decoders.Put(d)
	if err != nil || want != deflate.Nothing || made != size || len(src)-at < tail {
		return nil, false
	}
	return buf[:size], binary.BigEndian.Uint32(src[at:]) == adler32.Checksum(buf[:size])
}
