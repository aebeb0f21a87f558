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

// The two forms of a set in the index, by its first byte: the places, two bytes each, the lower
// first; or a bit for each place up to the last, the lowest of a byte first.
const (
	asPlaces = 0
	asBits   = 1
)

// pack gives the shorter form.
func (s *set) pack() []byte {
	n, last := s.count(), len(s)-1
	for last > 0 && s[last] == 0 {
		last--
	}
	if size := 8 * (last + 1); size <= 2*n {
		b := make([]byte, 1, 1+size)
		b[0] = asBits
		for _, w := range s[:last+1] {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		return b
	}
	b := make([]byte, 1, 1+2*n)
	s.each(func(place int) bool {
		b = binary.LittleEndian.AppendUint16(b, uint16(place))
		return true
	})
	return b
}

// unpack adds what pack wrote.
func (s *set) unpack(b []byte) error {
	switch {
	case len(b)%2 == 1 && b[0] == asPlaces:
		for b = b[1:]; len(b) > 0; b = b[2:] {
			s.add(int(binary.LittleEndian.Uint16(b)))
		}
		return nil
	case len(b)%8 == 1 && b[0] == asBits && len(b) <= 1+maxPlaces/8:
		for i := range len(b) / 8 {
			s[i] |= binary.LittleEndian.Uint64(b[1+8*i:])
		}
		return nil
	}
	return errOther
}

// meets counts the documents of s that are in a packed set.
func (s *set) meets(b []byte) (n int, err error) {
	switch {
	case len(b)%2 == 1 && b[0] == asPlaces:
		for b = b[1:]; len(b) > 0; b = b[2:] {
			if s.has(int(binary.LittleEndian.Uint16(b))) {
				n++
			}
		}
		return n, nil
	case len(b)%8 == 1 && b[0] == asBits && len(b) <= 1+maxPlaces/8:
		for i := range len(b) / 8 {
			n += bits.OnesCount64(s[i] & binary.LittleEndian.Uint64(b[1+8*i:]))
		}
		return n, nil
	}
	return 0, errOther
}
