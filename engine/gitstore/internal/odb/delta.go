package odb

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// appendDelta appends the delta that turns old into new, when they share a head
// and a tail: copy, insert, copy. Trees of which one entry changed need no more.
func appendDelta(dst, old, new []byte) []byte {
	head := commonPrefix(old, new)
	tail := commonSuffix(old[head:], new[head:])
	dst = binary.AppendUvarint(dst, uint64(len(old)))
	dst = binary.AppendUvarint(dst, uint64(len(new)))
	dst = appendCopy(dst, 0, head)
	dst = appendInsert(dst, new[head:len(new)-tail])
	return appendCopy(dst, len(old)-tail, tail)
}

// appendAligned appends the delta that turns old into new, which are as long, when they differ here and
// there: records of items that were begun alike. Beyond so many bytes it gives up.
func appendAligned(dst, old, new []byte, most int) (_ []byte, ok bool) {
	const worthCopying = 8 // an instruction to copy takes about half of that
	begin := len(dst)
	dst = binary.AppendUvarint(dst, uint64(len(old)))
	dst = binary.AppendUvarint(dst, uint64(len(new)))
	inserted := 0
	for at := 0; at < len(new) && len(dst)-begin+at-inserted < most; {
		same := commonPrefix(old[at:], new[at:])
		if same < worthCopying && at+same < len(new) {
			at += same + 1
			continue
		}
		dst = appendInsert(dst, new[inserted:at])
		dst = appendCopy(dst, at, same)
		at += same
		inserted = at
	}
	if len(dst)-begin+len(new)-inserted >= most {
		return dst[:begin], false
	}
	return appendInsert(dst, new[inserted:]), true
}

func appendInsert(dst, b []byte) []byte {
	for len(b) > 0 {
		n := min(len(b), 127)
		dst = append(dst, byte(n))
		dst = append(dst, b[:n]...)
		b = b[n:]
	}
	return dst
}

const maxCopy = 0xffffff

func appendCopy(dst []byte, off, n int) []byte {
	for n > 0 {
		size := min(n, maxCopy)
		at := len(dst)
		dst = append(dst, 0)
		op := byte(0x80)
		for i := range 4 {
			if b := byte(off >> (8 * i)); b != 0 {
				op |= 1 << i
				dst = append(dst, b)
			}
		}
		for i := range 3 {
			if b := byte(size >> (8 * i)); b != 0 && size != 0x10000 {
				op |= 1 << (4 + i)
				dst = append(dst, b)
			}
		}
		dst[at] = op
		off += size
		n -= size
	}
	return dst
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:])
		if x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

func commonSuffix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		x := binary.LittleEndian.Uint64(a[len(a)-i-8:]) ^ binary.LittleEndian.Uint64(b[len(b)-i-8:])
		if x != 0 {
			return i + bits.LeadingZeros64(x)/8
		}
	}
	for i < n && a[len(a)-1-i] == b[len(b)-1-i] {
		i++
	}
	return i
}

// applyDelta is the reading side, for any delta Git writes.
func applyDelta(base, delta []byte) ([]byte, error) { return applyDeltaIn(nil, base, delta) }

// applyDeltaIn is applyDelta in memory of a block.
func applyDeltaIn(in *block, base, delta []byte) ([]byte, error) {
	baseLen, n := binary.Uvarint(delta)
	if n <= 0 || baseLen != uint64(len(base)) {
		return nil, fmt.Errorf("%w: delta of a base of %d bytes, not %d", errCorrupt, baseLen, len(base))
	}
	delta = delta[n:]
	size, n := binary.Uvarint(delta)
	if n <= 0 || size > 1<<31 {
		return nil, fmt.Errorf("%w: delta's length", errCorrupt)
	}
	delta = delta[n:]
	out := in.take(int(min(size, 1<<24))) // a corrupt length must not ask for gigabytes
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		if op == 0 {
			return nil, fmt.Errorf("%w: delta instruction 0", errCorrupt)
		}
		if op&0x80 == 0 {
			if len(delta) < int(op) {
				return nil, fmt.Errorf("%w: delta ends early", errCorrupt)
			}
			out = append(out, delta[:op]...)
			delta = delta[op:]
			continue
		}
		var off, count int
		var err error
		if off, count, delta, err = readCopy(op, delta); err != nil {
			return nil, err
		}
		if off+count > len(base) {
			return nil, fmt.Errorf("%w: delta copies beyond its base", errCorrupt)
		}
		out = append(out, base[off:off+count]...)
	}
	if uint64(len(out)) != size {
		return nil, fmt.Errorf("%w: delta gives %d bytes, not %d", errCorrupt, len(out), size)
	}
	return out, nil
}

func readCopy(op byte, delta []byte) (off, count int, rest []byte, err error) {
	need := bits.OnesCount8(op & 0x7f)
	if len(delta) < need {
		return 0, 0, nil, fmt.Errorf("%w: delta ends early", errCorrupt)
	}
	for i := range 4 {
		if op&(1<<i) != 0 {
			off |= int(delta[0]) << (8 * i)
			delta = delta[1:]
		}
	}
	for i := range 3 {
		if op&(1<<(4+i)) != 0 {
			count |= int(delta[0]) << (8 * i)
			delta = delta[1:]
		}
	}
	if count == 0 {
		count = 0x10000
	}
	return off, count, delta, nil
}
