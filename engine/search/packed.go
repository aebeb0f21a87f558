package search

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"

	"bagpipe/engine/query"
)

// The rules are: what a search may look up of all items of a part is packed, as a row an item takes SQLite a hundred times as
// long. A row of a table has so much that it fits into a page, as SQLite takes several times as long for a longer one, which it puts
// together from a chain of pages; but for exact, which is seldom read. Its number is that of the part, shifted by pieceBits, and the
// row's among those of the part.
//
//	item    of each item in force its identifier, its digest, and the place of its document; by identifier
//	bounds  of the document at each place west, south, east and north in ten-millionths of a degree, four bytes each; nothing
//	        where it lies nowhere
//	times   of the document at each place its first and its last minute, four bytes each; the last before the first where it has none
//	exact   of each document of which these do not say all: its place, its bounds, its first and last second and the nanoseconds
//	common  of each term its key and its documents (set.go), both behind their lengths
//
// Numbers have all their bytes, the lower first.
const (
	pieceBits  = 16
	lastPiece  = 1<<pieceBits - 1 // of a part's rows
	pieceBytes = 8100             // of a row; there are some more in a page

	itemBytes = 8 + 8 + 2

	// Places of a row: whole words of a set.
	boundsPlaces = pieceBytes / boundsBytes &^ 63
	timesPlaces  = pieceBytes / timesBytes &^ 63
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

// within leaves in s the documents whose packed bounds meet a box. Those whose rounded bounds only touch it are compared as they are.
func (s *set) within(piece int, bounds []byte, box query.Box, exact func(place int) (reach, error)) error {
	var parts [2]packedBox
	n := copy(parts[:], packBoxes(box.Parts()))
	return s.filter(piece, boundsPlaces, bounds, boundsBytes, func(b []byte, place int) (is bool, err error) {
		at := func(i int) int32 { return int32(binary.LittleEndian.Uint32(b[4*i:])) }
		west, south, east, north := at(0), at(1)>>1, at(2), at(3)>>1
		crosses := at(1)&1 != 0
		touches := false
		for i := range parts[:n] {
			p := &parts[i]
			if south > p.north || north < p.south || !crosses && (west > p.east || east < p.west) || crosses && west > p.east && east < p.west {
				continue
			}
			if south < p.north && north > p.south && (!crosses && west < p.east && east > p.west || crosses && (west < p.east || east > p.west)) {
				return true, nil
			}
			touches = true
		}
		if !touches {
			return false, nil
		}
		r := reach{bounds: packedBox{west: west, south: south, east: east, north: north}.exactly()}
		if at(3)&1 != 0 {
			if r, err = exact(place); err != nil {
				return false, err
			}
		}
		return r.bounds.Meets(box), nil
	})
}

func packBoxes(all []query.Box) (packed []packedBox) {
	for _, b := range all {
		packed = append(packed, packBox(b))
	}
	return packed
}

// during leaves in s the documents whose packed times meet a span. Those of which a rounded end is that of the span are compared as they are.
func (s *set) during(piece int, times []byte, span query.Span, exact func(place int) (reach, error)) error {
	asked := packSpan(span)
	return s.filter(piece, timesPlaces, times, timesBytes, func(b []byte, place int) (is bool, err error) {
		at := func(i int) int32 { return int32(binary.LittleEndian.Uint32(b[4*i:])) }
		first, last := at(0)>>1, at(1)
		switch {
		case first > asked.last || last < asked.first:
			return false, nil
		case first < asked.last && last > asked.first:
			return true, nil
		}
		r := reach{span: packedSpan{first: first, last: last}.exactly()}
		if at(0)&1 != 0 {
			if r, err = exact(place); err != nil {
				return false, err
			}
		}
		return r.span.Meets(span), nil
	})
}

// filter leaves in s, of the places of a piece, those of which keep says so; each place has so many bytes.
func (s *set) filter(piece, places int, packed []byte, size int, keep func(b []byte, place int) (bool, error)) error {
	if len(packed)%size != 0 {
		return errOther
	}
	first := piece * places
	for i := first >> 6; i < min(len(s), (first+places)>>6); i++ {
		for w := s[i]; w != 0; w &= w - 1 {
			bit := bits.TrailingZeros64(w)
			place := i<<6 + bit
			at := (place - first) * size
			if at >= len(packed) {
				return errOther
			}
			is, err := keep(packed[at:at+size], place)
			if err != nil {
				return err
			}
			if !is {
				s[i] &^= 1 << bit
			}
		}
	}
	return nil
}
