package search

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sort"
	"time"

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
	pieceBytes = 8100 // of a row; there are some more in a page

	itemBytes   = 8 + 8 + 2
	boundsBytes = 4 * 4
	timesBytes  = 2 * 4
	exactBytes  = 2 + 4*8 + 2*(8+4)

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

// reach is where and when a document is.
type reach struct {
	bounds  query.Box
	located bool
	span    query.Span
	timed   bool
}

// appendBounds packs where a document lies; odd: that is not all.
func (r *reach) appendBounds(b []byte) (_ []byte, odd bool) {
	p := packedBox{west: math.MaxInt32, south: math.MaxInt32 / 2, east: math.MinInt32, north: math.MinInt32 / 2}
	if r.located {
		p = packBox(r.bounds)
		p.odd = p.exactly() != r.bounds
	}
	for _, v := range []int32{p.west, p.south<<1 | bit(p.crosses), p.east, p.north<<1 | bit(p.odd)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b, p.odd
}

// appendTimes packs when a document is from; odd: that is not all.
func (r *reach) appendTimes(b []byte) (_ []byte, odd bool) {
	p := packedSpan{first: math.MaxInt32 / 2, last: math.MinInt32}
	if r.timed {
		p = packSpan(r.span)
		is := p.exactly()
		p.odd = !is.Start.Equal(r.span.Start) || !is.End.Equal(r.span.End)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(p.first<<1|bit(p.odd)))
	return binary.LittleEndian.AppendUint32(b, uint32(p.last)), p.odd
}

// appendExact packs all of it.
func (r *reach) appendExact(b []byte, place int) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(place))
	for _, v := range r.bounds {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	for _, t := range []time.Time{r.span.Start, r.span.End} {
		b = binary.LittleEndian.AppendUint64(b, uint64(t.Unix()))
		b = binary.LittleEndian.AppendUint32(b, uint32(t.Nanosecond()))
	}
	return b
}

// exacts is what exact has of a part, in the order of places.
type exacts []byte

func (p exacts) find(place int) (r reach, err error) {
	i, is := sort.Find(len(p)/exactBytes, func(i int) int {
		return cmp.Compare(place, int(binary.LittleEndian.Uint16(p[i*exactBytes:])))
	})
	if !is || len(p)%exactBytes != 0 {
		return r, errOther
	}
	b := p[i*exactBytes+2:]
	for i := range r.bounds {
		r.bounds[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	for i, t := range []*time.Time{&r.span.Start, &r.span.End} {
		at := b[4*8+12*i:]
		*t = time.Unix(int64(binary.LittleEndian.Uint64(at)), int64(binary.LittleEndian.Uint32(at[8:])))
	}
	return r, nil
}

// packedBox is a box in ten-millionths of a degree, in which a hundredth of a metre can be told apart. Each number is
// rounded: of two of which one is less, that of the other is no less.
type packedBox struct {
	west, south, east, north int32
	crosses                  bool // 180°
	odd                      bool // it is not all
}

const ofDegree = 1e7

func packBox(b query.Box) packedBox {
	at := func(v float64) int32 { return int32(math.Round(v * ofDegree)) }
	return packedBox{west: at(b[0]), south: at(b[1]), east: at(b[2]), north: at(b[3]), crosses: b[0] > b[2]}
}

// exactly is the box of one that is not odd.
func (p packedBox) exactly() query.Box {
	return query.Box{float64(p.west) / ofDegree, float64(p.south) / ofDegree, float64(p.east) / ofDegree, float64(p.north) / ofDegree}
}

// packedSpan is a span in minutes.
type packedSpan struct {
	first, last int32
	odd         bool // it is not all
}

// packSpan rounds to the minute before; moments before or after all that have a number have the least or the largest.
func packSpan(s query.Span) packedSpan {
	minute := func(t time.Time) int32 {
		m := t.Unix() / 60
		if t.Unix()%60 < 0 {
			m--
		}
		return int32(min(max(m, math.MinInt32/2+1), math.MaxInt32/2-1))
	}
	return packedSpan{first: minute(s.Start), last: minute(s.End)}
}

// exactly is the span of one that is not odd: it ends as those do that were written without seconds.
func (p packedSpan) exactly() query.Span {
	return query.Span{Start: time.Unix(60*int64(p.first), 0), End: time.Unix(60*int64(p.last)+60, 0).Add(-time.Millisecond)}
}

func bit(is bool) int32 {
	if is {
		return 1
	}
	return 0
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
