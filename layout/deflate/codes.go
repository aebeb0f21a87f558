package deflate

import "math/bits"

const (
	maxLitBits  = 11
	distBits    = 8
	widthBits   = 7 // the code that the lengths of codes are written in is no longer
	maxCodeBits = 15

	maxLits  = 288
	maxDists = 32

	// Behind an entry that leads to a second table stand two codes at least, as a
	// code is complete, and there is room for the longest code.
	litEntries  = 1<<maxLitBits + maxLits/2<<(maxCodeBits-9)
	distEntries = 1<<distBits + maxDists/2<<(maxCodeBits-distBits)
)

// entry is the meaning of the next bits:
//
//	bits 0–7    bits of the code
//	bits 8–12   extra bits; of a link, the bits of the second table
//	bits 13–15  kind
//	bits 16–31  literal, base length, base distance, or where the second table is
type entry uint32

const (
	kindBad     entry = 0 << 13
	kindLiteral entry = 1 << 13
	kindEnd     entry = 2 << 13
	kindBase    entry = 3 << 13
	kindLink    entry = 4 << 13
	kindMask    entry = 7 << 13
)

// litTable and distTable hold the meanings of the next bits, and then the second tables.
type litTable struct {
	width uint
	at    [litEntries]entry
}

type distTable struct{ at [distEntries]entry }

func (t *litTable) find(acc uint64) entry { return find(t.at[:], t.width, acc) }

func (t *distTable) find(acc uint64) entry { return find(t.at[:], distBits, acc) }

func find(table []entry, width uint, acc uint64) entry {
	e := table[acc&(1<<width-1)]
	if e&kindMask == kindLink {
		e = table[e>>16+entry(acc>>width)&(1<<(e>>8&31)-1)]
	}
	return e
}

// The meanings of the symbols (RFC 1951, 3.2.5), without the bits of their codes.
var (
	litMeanings   = makeLits()
	distMeanings  = makeDists()
	plainMeanings = makePlain()
)

func makeLits() []entry {
	m := makePlain()
	m = append(m, kindEnd)
	base := entry(3)
	for i := entry(0); i < 28; i++ {
		extra := max(1, i/4) - 1
		m = append(m, kindBase|extra<<8|base<<16)
		base += 1 << extra
	}
	return append(m, kindBase|maxMatch<<16, kindBad, kindBad)
}

func makeDists() (m []entry) {
	base := entry(1)
	for i := entry(0); i < 30; i++ {
		extra := max(1, i/2) - 1
		m = append(m, kindBase|extra<<8|base<<16)
		base += 1 << extra
	}
	return append(m, kindBad, kindBad)
}

func makePlain() (m []entry) {
	for i := range entry(256) {
		m = append(m, kindLiteral|i<<16)
	}
	return m
}

// coded is a symbol that has a code, of so many bits.
type coded struct {
	symbol uint16
	length uint8
}

// builder makes tables of the lengths of codes.
type builder struct {
	sorted [maxLits]uint16 // symbols by length, then number
}

// build fills a table whose first 1<<first entries are looked up by the next bits.
// Only symbols that have a code are given, in their order: most have none. It refuses
// a code that is not complete, but for the one of a single symbol of one bit, and for
// none at all (which then is never used): so do zlib and everyone who writes such
// streams.
func (b *builder) build(table []entry, first uint, symbols []coded, m []entry) bool {
	var count, at [maxCodeBits + 1]int
	for _, c := range symbols {
		count[c.length&maxCodeBits]++
	}
	left := 1
	for l := 1; l < maxCodeBits; l++ {
		at[l+1] = at[l] + count[l]
		left = left<<1 - count[l]
	}
	switch left = left<<1 - count[maxCodeBits]; {
	case at[maxCodeBits]+count[maxCodeBits] != len(symbols) || left < 0:
		return false
	case left > 0:
		return sparse(table[:1<<first], symbols, m)
	}
	for _, c := range symbols {
		b.sorted[at[c.length&maxCodeBits]] = c.symbol
		at[c.length&maxCodeBits]++
	}
	b.assign(table, first, &count, m)
	return true
}

// sparse fills the table of a code that has one symbol, of one bit, or none.
func sparse(table []entry, symbols []coded, m []entry) bool {
	clear(table)
	if len(symbols) == 0 {
		return true
	}
	if len(symbols) > 1 || symbols[0].length > 1 {
		return false
	}
	for i := 0; i < len(table); i += 2 {
		table[i] = m[symbols[0].symbol] | 1
	}
	return true
}

// assign hands the codes out in the order of their lengths. A table of all codes of
// up to l bits is that of l-1 bits twice, and what is new.
func (b *builder) assign(table []entry, first uint, count *[maxCodeBits + 1]int, m []entry) {
	code, symbols := uint(0), b.sorted[:]
	table[0] = kindBad
	for l := uint(1); l <= first; l++ {
		copy(table[1<<(l-1):1<<l], table[:1<<(l-1)])
		code <<= 1
		for _, s := range symbols[:count[l]] {
			table[reversed(code, l)] = m[s] | entry(l)
			code++
		}
		symbols = symbols[count[l]:]
	}
	longest := uint(maxCodeBits)
	for longest > first && count[longest] == 0 {
		longest--
	}
	next := uint(1) << first // where the next second table begins
	more, head, place := longest-first, ^uint(0), uint(0)
	for l := first + 1; l <= longest; l++ {
		code <<= 1
		for _, s := range symbols[:count[l]] {
			r := reversed(code, l)
			if r&(1<<first-1) != head {
				head, place = r&(1<<first-1), next
				next += 1 << more
				table[head] = kindLink | entry(more)<<8 | entry(place)<<16
			}
			for i := r >> first; i < 1<<more; i += 1 << (l - first) {
				table[place+i] = m[s] | entry(l)
			}
			code++
		}
		symbols = symbols[count[l]:]
	}
}

func reversed(code, n uint) uint { return uint(bits.Reverse16(uint16(code))) >> (16 - n) }

// fixed are the tables of blocks that bring none (RFC 1951, 3.2.6).
var fixed = makeFixed()

type fixedTables struct {
	lits  litTable
	dists distTable
}

func makeFixed() *fixedTables {
	f, b := &fixedTables{}, &builder{}
	var l, d []coded
	for i := range uint16(maxLits) {
		switch {
		case i < 144 || i >= 280:
			l = append(l, coded{i, 8})
		case i < 256:
			l = append(l, coded{i, 9})
		default:
			l = append(l, coded{i, 7})
		}
	}
	for i := range uint16(maxDists) {
		d = append(d, coded{i, 5})
	}
	f.lits.width = 9
	b.build(f.lits.at[:], f.lits.width, l, litMeanings)
	b.build(f.dists.at[:], distBits, d, distMeanings)
	return f
}
