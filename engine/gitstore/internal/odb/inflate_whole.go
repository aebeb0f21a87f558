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
	out, _, ok := inflateStream(buf, size, src)
	return out, ok
}

// inflateStream is inflateWhole, and tells how long the stream is.
func inflateStream(buf []byte, size int, src []byte) (out []byte, used int, ok bool) {
	const head, tail = 2, 4
	if len(src) < head+tail || !zlibHead(src) {
		return nil, 0, false
	}
	out, used, ok = deflate.Whole(buf, size, src[head:])
	if !ok || len(src)-head-used < tail {
		return nil, 0, false
	}
	return out, head + used + tail, binary.BigEndian.Uint32(src[head+used:]) == adler32.Checksum(out)
}

func zlibHead(src []byte) bool {
	return src[0]&15 == 8 && src[0]>>4 <= 7 && src[1]&0x20 == 0 && (int(src[0])<<8|int(src[1]))%31 == 0
}

// storedStream is inflateStream of one block that is not deflated, as a Builder writes trees and
// commits: it gives the bytes where they stand in src.
func storedStream(size int, src []byte) (out []byte, used int, ok bool) {
	const head, tail = 2 + 5, 4
	if size > maxStored || len(src) < head+size+tail || src[2] != 1 || !zlibHead(src) ||
		int(binary.LittleEndian.Uint16(src[3:])) != size || binary.LittleEndian.Uint16(src[5:]) != ^uint16(size) {
		return nil, 0, false
	}
	out = src[head : head+size : head+size]
	return out, head + size + tail, binary.BigEndian.Uint32(src[head+size:]) == adler32.Checksum(out)
}
