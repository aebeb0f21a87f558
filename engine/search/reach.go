package search

import (
	"cmp"
	"encoding/binary"
	"math"
	"sort"
	"time"

	"bagpipe/engine/query"
)

const (
	boundsBytes = 4 * 4
	timesBytes  = 2 * 4
	exactBytes  = 2 + 4*8 + 2*(8+4)
)

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

func (p exacts) find(place int) (r reach, is bool) {
	i, is := sort.Find(len(p)/exactBytes, func(i int) int {
		return cmp.Compare(place, int(binary.LittleEndian.Uint16(p[i*exactBytes:])))
	})
	if !is || len(p)%exactBytes != 0 {
		return r, false
	}
	b := p[i*exactBytes+2:]
	for i := range r.bounds {
		r.bounds[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	for i, t := range []*time.Time{&r.span.Start, &r.span.End} {
		at := b[4*8+12*i:]
		*t = time.Unix(int64(binary.LittleEndian.Uint64(at)), int64(binary.LittleEndian.Uint32(at[8:])))
	}
	return r, true
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
