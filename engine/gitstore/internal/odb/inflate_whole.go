package odb

import (
	"encoding/binary"
	"hash/adler32"

	"bagpipe/layout/deflate"
)

// The rules are: this is the short way through a zlib stream (RFC 1950) that stands
// whole in memory and whose size is known, as a scan reads millions of them of a
// kilobyte each. It gives the bytes, or says that it cannot: on anything that is
// damaged, cut off or out of the ordinary the general way is asked, which names the
// fault. So it may refuse any stream, and must never give other bytes.

// inflateWhole gives the size bytes that the zlib stream at the head of src holds, in
// the memory of buf where it has room; false: it does not hold exactly that, or the
// general way has to look at it.
func inflateWhole(buf []byte, size int, src []byte) ([]byte, bool) {
	const head, tail = 2, 4
	if len(src) < head+tail || src[0]&15 != 8 || src[0]>>4 > 7 || src[1]&0x20 != 0 || (int(src[0])<<8|int(src[1]))%31 != 0 {
		return nil, false
	}
	out, used, ok := deflate.Whole(buf, size, src[head:])
	if !ok || len(src)-head-used < tail {
		return nil, false
	}
	return out, binary.BigEndian.Uint32(src[head+used:]) == adler32.Checksum(out)
}
