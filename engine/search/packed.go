package search

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sort"

	"bagpipe/engine/query"
)

// The rules are: what a search may look up of all items of a part is packed into one value of a table, as a row an
// item takes SQLite a hundred times as long.
//
//	item    of each item in force its identifier, its digest, and the place of its document; by identifier
//	bounds  of the document at each place west, south, east and north; no numbers where it lies nowhere
//	times   of the document at each place its first and its last millisecond; the last before the first where it has none
//	common  of each term its key and its documents (set.go), both behind their lengths
//
// Numbers have all their bytes, the lower first.
const (
	itemBytes   = 8 + 8 + 2
	boundsBytes = 4 * 8
	timesBytes  = 2 * 8
)

// entry is an item in force.
type entry struct {
	n, digest int64
	place     int
}

// items is what item has of a part.
type items []byte

func (p items) len() int           { return len(p) / itemBytes }
func (p items) n(i int) int64      { return int64(binary.LittleEndian.Uint64(p[i*itemBytes:])) }
func (p items) digest(i int) int64 { return int64(binary.LittleEndian.Uint64(p[i*itemBytes+8:])) }
func (p items) place(i int) int    { return int(binary.LittleEndian.Uint16(p[i*itemBytes+16:])) }

// find tells which item has an identifier.
func (p items) find(n int64) (int, bool) {
	return sort.Find(p.len(), func(i int) int { return cmp.Compare(n, p.n(i)) })
}

// packItems puts entries in order and packs them.
func packItems(all []entry) items {
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.n, b.n) })
	p := make(items, 0, itemBytes*len(all))
	for _, e := range all {
		p = binary.LittleEndian.AppendUint64(p, uint64(e.n))
		p = binary.LittleEndian.AppendUint64(p, uint64(e.digest))
		p = binary.LittleEndian.AppendUint16(p, uint16(e.place))
	}
	return p
}

// appendBounds packs where a document lies.
func appendBounds(b []byte, r *row) []byte {
	at := r.bounds
	if !r.located {
		at = query.Box{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	}
	for _, v := range at {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// appendTimes packs when a document is from.
func appendTimes(b []byte, r *row) []byte {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	if r.timed {
		first, last = r.span.Start.UnixMilli(), r.span.End.UnixMilli()
	}
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(first)), uint64(last))
}

// appendTerm packs a term's key and its documents.
func appendTerm(b, key, docs []byte) []byte {
	b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	return append(binary.AppendUvarint(b, uint64(len(docs))), docs...)
}

// eachTerm visits what appendTerm packed.
func eachTerm(b []byte, visit func(key, docs []byte) error) error {
	next := func() (v []byte, ok bool) {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return nil, false
		}
		v, b = b[size:size+int(n)], b[size+int(n):]
		return v, true
	}
	for len(b) > 0 {
		key, ok := next()
		if !ok {
			return errOther
		}
		docs, ok := next()
		if !ok {
			return errOther
		}
		if err := visit(key, docs); err != nil {
			return err
		}
	}
	return nil
}

// within leaves in s the documents whose packed bounds meet a box.
func (s *set) within(bounds []byte, box query.Box) error {
	parts := box.Parts()
	return s.filter(bounds, boundsBytes, func(b []byte) bool {
		at := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])) }
		west, south, east, north := at(0), at(1), at(2), at(3)
		for i := range parts {
			p := &parts[i]
			if south <= p[3] && north >= p[1] && (west <= east && west <= p[2] && east >= p[0] || west > east && (west <= p[2] || east >= p[0])) {
				return true
			}
		}
		return false
	})
}

// during leaves in s the documents whose packed times meet a span.
func (s *set) during(times []byte, span query.Span) error {
	first, last := span.Start.UnixMilli(), span.End.UnixMilli()
	return s.filter(times, timesBytes, func(b []byte) bool {
		return int64(binary.LittleEndian.Uint64(b)) <= last && int64(binary.LittleEndian.Uint64(b[8:])) >= first
	})
}

// filter leaves in s those places of which keep says so; each place has so many bytes.
func (s *set) filter(packed []byte, size int, keep func([]byte) bool) error {
	if len(packed)%size != 0 {
		return errOther
	}
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			bit := bits.TrailingZeros64(w)
			at := (i<<6 + bit) * size
			if at >= len(packed) {
				return errOther
			}
			if !keep(packed[at : at+size]) {
				s[i] &^= 1 << bit
			}
		}
	}
	return nil
}
