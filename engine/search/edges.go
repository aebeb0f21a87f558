package search

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"bagpipe/engine/query"
)

// The rules are: where and when a document is are six edges, each a value. Those of the east, the north and the latest moment are
// kept negated, so that of each edge a question asks for the documents whose value is at most that of its own opposite edge.
//
// A part has the documents that have an edge in the order of their values, as lists, each of which fits into a page. A list's key ends with the
// value of its first documents. It has the documents of the lists before it and its first ones, packed (set.go), and behind these the next ones,
// each its value and place: so one list answers. What comes to the part has its lists of edges written anew. The young part,
// to which little comes often, has the six values of each document in the order of the places.

// edge is one of where and when a document is.
type edge int

const (
	west edge = iota // these four in the order of a box
	south
	east
	north
	earliest
	latest
	edges
)

// reach is where and when a document is.
type reach struct {
	bounds  query.Box
	located bool
	span    query.Span
	timed   bool
}

func (r *reach) has(e edge) bool { return e < earliest && r.located || e >= earliest && r.timed }

func (r *reach) crosses() bool { return r.located && r.bounds[west] > r.bounds[east] }

// value is where an edge lies: by hi, then by lo, which moments alone have.
type value struct {
	hi uint64
	lo uint32
}

func (v value) compare(o value) int { return cmp.Or(cmp.Compare(v.hi, o.hi), cmp.Compare(v.lo, o.lo)) }

// isUpTo reports whether v is at most o.
func (v value) isUpTo(o value) bool { return v.hi < o.hi || v.hi == o.hi && v.lo <= o.lo }

// valuesOf gives the values of all edges.
func valuesOf(b query.Box, s query.Span) (all [edges]value) {
	const sign = 1 << 63
	for i, v := range b {
		bits := math.Float64bits(v + 0) // -0 is 0
		if bits&sign != 0 {
			bits = ^bits
		} else {
			bits |= sign
		}
		all[i].hi = bits
	}
	for i, t := range []time.Time{s.Start, s.End} {
		all[int(earliest)+i] = value{uint64(t.Unix()) ^ sign, uint32(t.Nanosecond())}
	}
	for _, e := range []edge{east, north, latest} {
		all[e].hi = ^all[e].hi
	}
	all[latest].lo = ^all[latest].lo
	return all
}

// asking gives the values up to which the edges are asked for.
func asking(q query.Query) [edges]value {
	var b query.Box
	if q.BBox != nil {
		b = *q.BBox
	}
	return valuesOf(query.Box{b[east], b[north], b[west], b[south]}, query.Span{Start: q.Span.End, End: q.Span.Start})
}

// edgeKey begins the keys of an edge's lists.
func edgeKey(e edge) string { return keyEdge + string([]byte{byte(e)}) }

func (e edge) append(b []byte, v value) []byte {
	if b = binary.BigEndian.AppendUint64(b, v.hi); e >= earliest {
		b = binary.BigEndian.AppendUint32(b, v.lo)
	}
	return b
}

// size is how many bytes a value of e has.
func (e edge) size() int {
	if e >= earliest {
		return 8 + 4
	}
	return 8
}

// read reads what append wrote.
func (e edge) read(b []byte) (v value) {
	if v.hi = binary.BigEndian.Uint64(b); e >= earliest {
		v.lo = binary.BigEndian.Uint32(b[8:])
	}
	return v
}

// edged is a document and its value of an edge.
type edged struct {
	value
	place uint16
}

// packEdge makes the lists of an edge.
func packEdge(to map[string][]byte, e edge, all []edged) {
	slices.SortFunc(all, func(a, b edged) int { return cmp.Or(a.compare(b.value), cmp.Compare(a.place, b.place)) })
	next := func() (same []edged) { // those of one value
		n := 1
		for n < len(all) && all[n].value == all[0].value {
			n++
		}
		same, all = all[:n], all[n:]
		return same
	}
	var known set
	for len(all) > 0 {
		begin := next()
		for _, d := range begin {
			known.add(int(d.place))
		}
		docs := known.pack()
		room := max((pieceBytes-len(docs))/(e.size()+2), pieceBytes/(e.size()+2)/4)
		var more []byte
		for len(all) > 0 {
			was := all
			same := next()
			if room -= len(same); room < 0 {
				all = was
				break
			}
			for _, d := range same {
				more = binary.LittleEndian.AppendUint16(e.append(more, d.value), d.place)
				known.add(int(d.place))
			}
		}
		to[string(e.append([]byte(edgeKey(e)), begin[0].value))] = appendTerm(nil, more, docs)
	}
}

// unpack visits the documents of a list that are in none before it; known has those, and then these.
func (e edge) unpack(begin value, list []byte, known *set, visit func(edged)) error {
	return eachTerm(list, func(more, docs []byte) error {
		var begins set
		if err := begins.unpack(docs); err != nil {
			return err
		}
		begins.without(known)
		known.or(&begins)
		begins.each(func(place int) bool {
			visit(edged{begin, uint16(place)})
			return true
		})
		return e.eachEdged(more, func(d edged) {
			known.add(int(d.place))
			visit(d)
		})
	})
}

// eachEdged visits the documents that a list has behind the packed ones.
func (e edge) eachEdged(more []byte, visit func(edged)) error {
	size := e.size() + 2
	if len(more)%size != 0 {
		return errOther
	}
	for ; len(more) > 0; more = more[size:] {
		visit(edged{e.read(more), binary.LittleEndian.Uint16(more[size-2:])})
	}
	return nil
}

// addUpTo adds the documents that have at most a value, by the list of an edge whose own is at most that and the last such.
func (s *set) addUpTo(list []byte, e edge, v value) error {
	return eachTerm(list, func(more, docs []byte) error {
		if err := s.unpack(docs); err != nil {
			return err
		}
		return e.eachEdged(more, func(d edged) {
			if d.isUpTo(v) {
				s.add(int(d.place))
			}
		})
	})
}

// meet leaves in s the documents whose bounds and times fit, by those whose edge has at most a value and those that lie across 180°.
func (s *set) meet(q query.Query, upTo func(edge, value) (*set, error), across func() (*set, error)) error {
	asked := asking(q)
	var each []edge // that has to fit by itself
	if q.BBox != nil {
		each = append(each, south, north)
	}
	if q.Timed() {
		each = append(each, earliest, latest)
	}
	for _, e := range each {
		if s.isEmpty() {
			return nil
		}
		fits, err := upTo(e, asked[e])
		if err != nil {
			return err
		}
		s.and(fits)
	}
	if q.BBox == nil || s.isEmpty() {
		return nil
	}
	fromWest, err := upTo(west, asked[west])
	if err != nil {
		return err
	}
	fromEast, err := upTo(east, asked[east])
	if err != nil {
		return err
	}
	further, err := across()
	if err != nil {
		return err
	}
	either := *fromWest
	either.or(fromEast)
	if q.BBox[west] > q.BBox[east] {
		either.or(further)
		s.and(&either)
		return nil
	}
	further.and(&either)
	fromWest.and(fromEast)
	fromWest.or(further)
	s.and(fromWest)
	return nil
}

// What of a document of the young part is known, before its values.
const (
	isLocated = 1 << iota
	isTimed
	isAcross

	reachBytes  = 1 + 4*8 + 2*(8+4)
	reachPlaces = pieceBytes / reachBytes &^ 63 // of a row: whole words of a set
)

// appendReach packs where and when a document of the young part is.
func (r *reach) appendReach(b []byte) []byte {
	is := byte(0)
	if r.located {
		is |= isLocated
	}
	if r.crosses() {
		is |= isAcross
	}
	if r.timed {
		is |= isTimed
	}
	b = append(b, is)
	for e, v := range valuesOf(r.bounds, r.span) {
		b = edge(e).append(b, v)
	}
	return b
}

// reached leaves in s, of the documents of a row of the young part, those whose bounds and times fit.
func (s *set) reached(piece int, packed []byte, q query.Query) error {
	asked := asking(q)
	return s.filter(piece, reachPlaces, packed, reachBytes, func(b []byte) bool {
		is, at := b[0], 1
		var up [edges]bool
		for e := range edges {
			up[e] = e.read(b[at:]).isUpTo(asked[e])
			at += e.size()
		}
		switch across := is&isAcross != 0; {
		case q.Timed() && !(is&isTimed != 0 && up[earliest] && up[latest]):
			return false
		case q.BBox == nil:
			return true
		case is&isLocated == 0 || !up[south] || !up[north]:
			return false
		case q.BBox[west] > q.BBox[east]:
			return up[west] || up[east] || across
		default:
			return up[west] && up[east] || across && (up[west] || up[east])
		}
	})
}
