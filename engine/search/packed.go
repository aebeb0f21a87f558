package search

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"
)

// The rules are: what a search may look up of all items of a part is packed, as a row an item takes SQLite a hundred times as
// long. A row of a table has so much that it fits into a page, as SQLite takes several times as long for a longer one, which it puts
// together from a chain of pages. Its number is that of the part, shifted by pieceBits, and the row's among those of the part.
//
//	item    of each item in force its identifier, its digest, and the place of its document; by identifier
//	reach   of the document at each place of the young part where and when it is (edges.go)
//	common  of each term its key and its documents (set.go), both behind their lengths
//
// Numbers have all their bytes, the lower first.
const (
	pieceBits  = 16
	lastPiece  = 1<<pieceBits - 1 // of a part's rows
	pieceBytes = 8100             // of a row; there are some more in a page

	itemBytes = 8 + 8 + 2
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

// filter leaves in s, of the places of a piece, those of which keep says so; each place has so many bytes.
func (s *set) filter(piece, places int, packed []byte, size int, keep func(b []byte) bool) error {
	if len(packed)%size != 0 {
		return errOther
	}
	first := piece * places
	for i := first >> 6; i < min(len(s), (first+places)>>6); i++ {
		for w := s[i]; w != 0; w &= w - 1 {
			bit := bits.TrailingZeros64(w)
			at := (i<<6 + bit - first) * size
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
