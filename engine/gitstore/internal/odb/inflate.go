package odb

import (
	"encoding/binary"
	"hash/adler32"
	"sync"
)

// The rules are: this is the short way through a zlib stream (RFC 1950, 1951) that
// stands whole in memory and whose size is known, as a scan reads millions of them
// of a kilobyte each. It gives the bytes, or says that it cannot: on anything that is
// damaged, cut off or out of the ordinary the general way is asked, which names the
// fault. So it may refuse what it likes, and must never give other bytes.

// unpacker is what one stream after the other is read with.
type unpacker struct {
	src  []byte
	at   int    // of the next byte
	buf  uint64 // bits that were taken from src and not used, the next one lowest
	n    uint   // how many; above them buf may hold some of the bits that follow
	over uint   // bytes of zeros that were taken behind the end of src

	literals [literalTable]codeEntry
	dists    [distTable]codeEntry
	small    [1 << smallBits]codeEntry
	builder  codeBuilder
}

var unpackers = sync.Pool{New: func() any { return new(unpacker) }}

// inflateWhole fills dst with what the zlib stream at the head of src holds; false:
// it does not hold exactly that, or the general way has to look at it.
func inflateWhole(dst, src []byte) bool {
	u := unpackers.Get().(*unpacker)
	ok := u.stream(dst, src)
	u.src = nil
	unpackers.Put(u)
	return ok
}

func (u *unpacker) stream(dst, src []byte) bool {
	const head, tail = 2, 4
	if len(src) < head+tail || src[0]&15 != 8 || src[0]>>4 > 7 || src[1]&0x20 != 0 || (int(src[0])<<8|int(src[1]))%31 != 0 {
		return false
	}
	u.src, u.at, u.buf, u.n, u.over = src, head, 0, 0, 0
	at := 0
	for last := false; !last; {
		u.fill()
		last = u.take(1) == 1
		ok := false
		switch u.take(2) {
		case 0:
			at, ok = u.stored(dst, at)
		case 1:
			at, ok = u.block(dst, at, &fixed.literals, &fixed.dists)
		case 2:
			if u.dynamicTables() {
				at, ok = u.block(dst, at, &u.literals, &u.dists)
			}
		}
		if !ok {
			return false
		}
	}
	if at != len(dst) || !u.align() || len(src)-u.at < tail {
		return false
	}
	return binary.BigEndian.Uint32(src[u.at:]) == adler32.Checksum(dst)
}

// fill takes bits, so that there are at least 56, of zeros behind the end of src.
func (u *unpacker) fill() {
	if u.at+8 <= len(u.src) {
		u.buf |= binary.LittleEndian.Uint64(u.src[u.at:]) << u.n
		u.at += int(63-u.n) >> 3
		u.n |= 56
		return
	}
	u.buf &= 1<<u.n - 1
	for u.n < 56 {
		if u.at < len(u.src) {
			u.buf |= uint64(u.src[u.at]) << u.n
			u.at++
		} else {
			u.over++
		}
		u.n += 8
	}
}

// take gives the next few bits; fill was called for them.
func (u *unpacker) take(n uint) int {
	v := int(u.buf & (1<<n - 1))
	u.buf >>= n
	u.n -= n
	return v
}

// align goes on at the next whole byte; false: that stands behind the end.
func (u *unpacker) align() bool {
	whole := u.n >> 3
	if u.over > whole {
		return false
	}
	u.at -= int(whole - u.over)
	u.buf, u.n, u.over = 0, 0, 0
	return true
}

func (u *unpacker) stored(dst []byte, at int) (int, bool) {
	if !u.align() || len(u.src)-u.at < 4 {
		return at, false
	}
	n := int(binary.LittleEndian.Uint16(u.src[u.at:]))
	not := int(binary.LittleEndian.Uint16(u.src[u.at+2:]))
	u.at += 4
	if n != not^0xffff || n > len(u.src)-u.at || n > len(dst)-at {
		return at, false
	}
	copy(dst[at:], u.src[u.at:u.at+n])
	u.at += n
	return at + n, true
}

// block reads the literals and matches of one block.
func (u *unpacker) block(dst []byte, at int, literals *[literalTable]codeEntry, dists *[distTable]codeEntry) (int, bool) {
	for {
		if u.n < 48 { // the longest length and distance, with their extra bits
			u.fill()
			if u.over > 8 {
				return at, false
			}
		}
		e := literals[u.buf&(1<<literalBits-1)]
		if e.kind() == kindSecond {
			e = literals[e.value()+int(u.buf>>literalBits&(1<<e.extra()-1))]
		}
		u.buf >>= e.bits()
		u.n -= e.bits()
		if e.kind() == kindLiteral {
			if at >= len(dst) {
				return at, false
			}
			dst[at] = byte(e.value())
			at++
			continue
		}
		if e.kind() != kindBase {
			return at, e.kind() == kindEnd
		}
		length := e.value() + u.take(e.extra())
		e = dists[u.buf&(1<<distBits-1)]
		if e.kind() == kindSecond {
			e = dists[e.value()+int(u.buf>>distBits&(1<<e.extra()-1))]
		}
		u.buf >>= e.bits()
		u.n -= e.bits()
		back := e.value() + u.take(e.extra())
		if e.kind() != kindBase || back > at || length > len(dst)-at {
			return at, false
		}
		repeat(dst, at, back, length)
		at += length
	}
}

// repeat copies length bytes from back bytes before at; the two may overlap.
func repeat(dst []byte, at, back, length int) {
	from := dst[at-back : at-back+length]
	if back >= length {
		copy(dst[at:], from)
		return
	}
	for done := 0; done < length; { // what was copied repeats, too
		done += copy(dst[at+done:at+length], dst[at-back:at+done])
	}
}
