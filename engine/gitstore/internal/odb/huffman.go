package odb

import "math/bits"

const (
	literalBits = 9 // of a code are looked up at once, the rest in a second table
	distBits    = 8
	smallBits   = 7 // the code that the lengths of codes are written in is no longer
	maxCodeBits = 15

	// Behind an entry that leads to a second table stand two symbols at least, as
	// the code is complete, and there is room for the longest code.
	literalTable = 1<<literalBits + maxLiterals/2<<(maxCodeBits-literalBits)
	distTable    = 1<<distBits + maxDists/2<<(maxCodeBits-distBits)

	maxLiterals = 288
	maxDists    = 32
)

// codeEntry is what the next bits mean: how many of them are the code (bits 0-4),
// the kind (5-7), how many extra bits follow (8-15), and the literal, base or place
// of the second table (16-31).
type codeEntry uint32

const (
	kindLiteral codeEntry = iota << 5
	kindBase              // of a length or a distance
	kindEnd               // of the block
	kindSecond            // it is in a second table, at the place plus the extra bits
	kindNone              // no such code

	kindMask codeEntry = 7 << 5
)

func (e codeEntry) bits() uint      { return uint(e & 31) }
func (e codeEntry) kind() codeEntry { return e & kindMask }
func (e codeEntry) extra() uint     { return uint(e >> 8 & 31) }
func (e codeEntry) value() int      { return int(e >> 16) }

// meanings are those of the symbols, without the bits of their codes.
type meanings []codeEntry

var (
	literalMeanings = makeLiterals()
	distMeanings    = makeDists()
	plainMeanings   = makePlain()
)

func makeLiterals() meanings {
	m := make(meanings, maxLiterals)
	for i := range 256 {
		m[i] = kindLiteral | codeEntry(i)<<16
	}
	m[256] = kindEnd
	base := 3
	for i := 257; i < 285; i++ {
		extra := max(0, (i-261)/4)
		m[i] = kindBase | codeEntry(extra)<<8 | codeEntry(base)<<16
		base += 1 << extra
	}
	m[285] = kindBase | 258<<16
	m[286], m[287] = kindNone, kindNone
	return m
}

func makeDists() meanings {
	m := make(meanings, maxDists)
	base := 1
	for i := range 30 {
		extra := max(0, i/2-1)
		m[i] = kindBase | codeEntry(extra)<<8 | codeEntry(base)<<16
		base += 1 << extra
	}
	m[30], m[31] = kindNone, kindNone
	return m
}

func makePlain() meanings {
	m := make(meanings, 19)
	for i := range m {
		m[i] = kindLiteral | codeEntry(i)<<16
	}
	return m
}

// codeBuilder makes tables of the lengths of codes.
type codeBuilder struct {
	lengths [maxLiterals + maxDists]uint8
	sorted  [maxLiterals + 1]uint16 // symbols by length, then number; and those without a code
}

// build fills a table whose first 1<<first entries are looked up by the next bits.
// It refuses a code that is not complete, but for the one of a single distance, and
// for none at all.
func (b *codeBuilder) build(table []codeEntry, first uint, lengths []uint8, m meanings) bool {
	var count, other, at [maxCodeBits + 1]int
	for i := 0; i+1 < len(lengths); i += 2 { // two counts, as one would wait for itself
		count[lengths[i]]++
		other[lengths[i+1]]++
	}
	if len(lengths)%2 == 1 {
		count[lengths[len(lengths)-1]]++
	}
	for l, n := range other {
		count[l] += n
	}
	used := len(lengths) - count[0]
	left := 1
	for l := 1; l <= maxCodeBits; l++ {
		left = left<<1 - count[l]
		if left < 0 {
			return false
		}
		if l < maxCodeBits {
			at[l+1] = at[l] + count[l]
		}
	}
	if left > 0 {
		return b.sparse(table[:1<<first], used, lengths, m)
	}
	for s, l := range lengths {
		if l > 0 {
			b.sorted[at[l]] = uint16(s)
			at[l]++
		}
	}
	b.assign(table, first, &count, m)
	return true
}

// sparse fills the table of a code that has one symbol, of one bit, or none.
func (b *codeBuilder) sparse(table []codeEntry, used int, lengths []uint8, m meanings) bool {
	if used > 1 {
		return false
	}
	for i := range table {
		table[i] = kindNone
	}
	for s, l := range lengths {
		if l > 1 {
			return false
		}
		if l == 1 {
			for i := 0; i < len(table); i += 2 {
				table[i] = m[s] | 1
			}
		}
	}
	return true
}

// assign hands the codes out in the order of their lengths. A table of all codes of
// up to l bits is that of l-1 bits twice, and what is new.
func (b *codeBuilder) assign(table []codeEntry, first uint, count *[maxCodeBits + 1]int, m meanings) {
	code, symbols := uint(0), b.sorted[:]
	table[0] = kindNone
	for l := uint(1); l <= first; l++ {
		copy(table[1<<(l-1):1<<l], table[:1<<(l-1)])
		code <<= 1
		for _, s := range symbols[:count[l]] {
			table[reversed(code, l)] = m[s] | codeEntry(l)
			code++
		}
		symbols = symbols[count[l]:]
	}
	next := 1 << first // where the next second table begins
	longest := uint(maxCodeBits)
	for longest > first && count[longest] == 0 {
		longest--
	}
	more, current, place := longest-first, ^uint(0), 0
	for l := first + 1; l <= longest; l++ {
		code <<= 1
		for _, s := range symbols[:count[l]] {
			r := reversed(code, l)
			if head := r & (1<<first - 1); head != current {
				current, place = head, next
				next += 1 << more
				table[head] = kindSecond | codeEntry(more)<<8 | codeEntry(place)<<16
			}
			for i := r >> first; i < 1<<more; i += 1 << (l - first) {
				table[place+int(i)] = m[s] | codeEntry(l)
			}
			code++
		}
		symbols = symbols[count[l]:]
	}
}

func reversed(code, n uint) uint { return uint(bits.Reverse16(uint16(code))) >> (16 - n) }

// fixed are the tables of blocks that bring none.
var fixed = makeFixed()

type fixedTables struct {
	literals [literalTable]codeEntry
	dists    [distTable]codeEntry
}

func makeFixed() *fixedTables {
	f, b := &fixedTables{}, &codeBuilder{}
	l, d := b.lengths[:maxLiterals], b.lengths[maxLiterals:]
	for i := range l {
		switch {
		case i < 144 || i >= 280:
			l[i] = 8
		case i < 256:
			l[i] = 9
		default:
			l[i] = 7
		}
	}
	for i := range d {
		d[i] = 5
	}
	b.build(f.literals[:], literalBits, l, literalMeanings)
	b.build(f.dists[:], distBits, d, distMeanings)
	return f
}

// lengthOrder is the order in which the lengths of the code of lengths stand.
var lengthOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamicTables reads the tables at the head of a block.
func (u *unpacker) dynamicTables() bool {
	literals, dists, small := 257+u.take(5), 1+u.take(5), 4+u.take(4)
	if literals > 286 || dists > 30 {
		return false
	}
	var of [19]uint8
	for _, i := range lengthOrder[:small] {
		u.fill()
		of[i] = uint8(u.take(3))
	}
	all := u.builder.lengths[:literals+dists]
	if !u.builder.build(u.small[:], smallBits, of[:], plainMeanings) || !u.readLengths(all) || all[256] == 0 {
		return false
	}
	return u.builder.build(u.literals[:], literalBits, all[:literals], literalMeanings) && u.builder.build(u.dists[:], distBits, all[literals:], distMeanings)
}

func (u *unpacker) readLengths(all []uint8) bool {
	for i := 0; i < len(all); {
		if u.n < 16 {
			u.fill()
			if u.over > 8 {
				return false
			}
		}
		e := u.small[u.buf&(1<<smallBits-1)]
		if e.kind() != kindLiteral {
			return false
		}
		u.take(e.bits())
		v, again := uint8(0), 0
		switch s := e.value(); s {
		case 16:
			if i == 0 {
				return false
			}
			v, again = all[i-1], 3+u.take(2)
		case 17:
			again = 3 + u.take(3)
		case 18:
			again = 11 + u.take(7)
		default:
			v, again = uint8(s), 1
		}
		if again > len(all)-i {
			return false
		}
		for range again {
			all[i] = v
			i++
		}
	}
	return true
}
