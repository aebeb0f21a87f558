package search

import (
	"encoding/binary"
	"math/bits"
)

// maxPlaces is how many documents a part may have had.
const maxPlaces = 1 << 16

// set is documents of one part, by their places in it.
type set [maxPlaces / 64]uint64

func (s *set) add(place int)      { s[place>>6] |= 1 << (place & 63) }
func (s *set) remove(place int)   { s[place>>6] &^= 1 << (place & 63) }
func (s *set) has(place int) bool { return s[place>>6]>>(place&63)&1 != 0 }

func (s *set) and(o *set) {
	for i := range s {
		s[i] &= o[i]
	}
}

func (s *set) or(o *set) {
	for i := range s {
		s[i] |= o[i]
	}
}

func (s *set) without(o *set) {
	for i := range s {
		s[i] &^= o[i]
	}
}

func (s *set) isEmpty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

// ends gives the first and the last place; is: there are any.
func (s *set) ends() (first, last int, is bool) {
	for i, w := range s {
		if w == 0 {
			continue
		}
		if !is {
			first, is = i<<6+bits.TrailingZeros64(w), true
		}
		last = i<<6 + bits.Len64(w) - 1
	}
	return first, last, is
}

func (s *set) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// each visits the places in order, until visit answers false.
func (s *set) each(visit func(place int) bool) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			if !visit(i<<6 + bits.TrailingZeros64(w)) {
				return
			}
		}
	}
}

// A set in the index is the number of its words (two bytes, the lower first), the words, a bit for each place from the
// first on, and then further places, two bytes each: so what comes to it is written behind it.

// packBytes is where of a set without words the places begin.
const packBytes = 2

// pack gives the shorter form: words alone, or places alone.
func (s *set) pack() []byte {
	n, last := s.count(), len(s)-1
	for last > 0 && s[last] == 0 {
		last--
	}
	if size := 8 * (last + 1); size <= 2*n {
		b := binary.LittleEndian.AppendUint16(make([]byte, 0, packBytes+size), uint16(last+1))
		for _, w := range s[:last+1] {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		return b
	}
	places := make([]uint16, 0, n)
	s.each(func(place int) bool {
		places = append(places, uint16(place))
		return true
	})
	return packPlaces(places)
}

// packPlaces packs places without words.
func packPlaces(places []uint16) []byte {
	b := make([]byte, packBytes, packBytes+2*len(places))
	for _, place := range places {
		b = binary.LittleEndian.AppendUint16(b, place)
	}
	return b
}

// packed is what of a set pack wrote, and of the places that were written behind it.
func packed(b []byte, word func(i int, w uint64), place func(int)) error {
	if len(b)%2 != 0 || len(b) < packBytes {
		return errOther
	}
	n := int(binary.LittleEndian.Uint16(b))
	if b = b[packBytes:]; n > maxPlaces/64 || len(b) < 8*n {
		return errOther
	}
	for i := range n {
		word(i, binary.LittleEndian.Uint64(b[8*i:]))
	}
	for b = b[8*n:]; len(b) > 0; b = b[2:] {
		place(int(binary.LittleEndian.Uint16(b)))
	}
	return nil
}

// unpack adds a packed set.
func (s *set) unpack(b []byte) error {
	return packed(b, func(i int, w uint64) { s[i] |= w }, s.add)
}

// meets counts the documents of s that are in a packed set.
func (s *set) meets(b []byte) (n int, err error) {
	err = packed(b, func(i int, w uint64) { n += bits.OnesCount64(s[i] & w) }, func(place int) {
		if s.has(place) {
			n++
		}
	})
	return n, err
}
