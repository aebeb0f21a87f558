package bags

import "math/bits"

// lengthCode and distanceCode give base and extra bits of RFC 1951, 3.2.5.
func lengthCode(symbol int) (base, extra uint32, ok bool) {
	switch i := uint32(symbol - 257); {
	case i < 8:
		return i + 3, 0, true
	case i < 28:
		extra = i/4 - 1
		return (4+i%4)<<extra + 3, extra, true
	case i == 28:
		return maxMatch, 0, true
	}
	return 0, 0, false
}

func distanceCode(symbol int) (base, extra uint32, ok bool) {
	switch i := uint32(symbol); {
	case i < 4:
		return i + 1, 0, true
	case i < 30:
		extra = i/2 - 1
		return (2+i%2)<<extra + 1, extra, true
	}
	return 0, 0, false
}

func litEntry(symbol int) uint32 {
	switch {
	case symbol < 256:
		return kindLiteral | uint32(symbol)<<16
	case symbol == 256:
		return kindEnd
	}
	base, extra, ok := lengthCode(symbol)
	if !ok {
		return kindBad
	}
	return kindBase | base<<16 | extra<<8
}

func distEntry(symbol int) uint32 {
	base, extra, ok := distanceCode(symbol)
	if !ok {
		return kindBad
	}
	return kindBase | base<<16 | extra<<8
}

// build makes a table of codes from their lengths. An incomplete code is taken only
// where it is a single code of one bit, or none at all (which then is never used):
// so do zlib and everyone who writes such streams.
func build(table []uint32, width uint8, lengths []uint8, entry func(int) uint32) error {
	var count [16]uint32
	longest := uint8(0)
	for _, l := range lengths {
		count[l]++
		longest = max(longest, l)
	}
	count[0] = 0
	left := uint32(1)
	var next [16]uint32
	code := uint32(0)
	for l := 1; l <= 15; l++ {
		if left <<= 1; left < count[l] {
			return errDeflate
		}
		left -= count[l]
		code = (code + count[l-1]) << 1
		next[l] = code
	}
	if left > 0 && longest > 1 {
		return errDeflate
	}
	clear(table[:1<<width])
	free := uint32(1) << width
	for symbol, l := range lengths {
		if l == 0 {
			continue
		}
		rev := reverse(next[l], l)
		next[l]++
		e := entry(symbol)
		if e != kindBad {
			e |= uint32(l)
		}
		if l <= width {
			for i := rev; i < 1<<width; i += 1 << l {
				table[i] = e
			}
			continue
		}
		low := rev & (1<<width - 1)
		if table[low]&kindMask != kindLink {
			second := longest - width
			table[low] = kindLink | free<<16 | uint32(second)<<8
			clear(table[free : free+1<<second])
			free += 1 << second
		}
		link := table[low]
		second := link >> 8 & 31
		for i := rev >> width; i < 1<<second; i += 1 << (l - width) {
			table[link>>16+i] = e
		}
	}
	return nil
}

func reverse(code uint32, size uint8) uint32 { return bits.Reverse32(code) >> (32 - size) }

// fixed sets the codes of RFC 1951, 3.2.6.
func (d *deflated) fixed() error {
	var lengths [288]uint8
	for i := range lengths {
		switch {
		case i < 144 || i >= 280:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		default:
			lengths[i] = 7
		}
	}
	if err := build(d.lit[:], litBits, lengths[:], litEntry); err != nil {
		return err
	}
	for i := range 32 {
		lengths[i] = 5
	}
	return build(d.dist[:], distBits, lengths[:32], distEntry)
}

// lengthOrder is the order in which the lengths of the lengths' codes stand.
var lengthOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

const lengthBits = 7

// dynamic reads the codes of RFC 1951, 3.2.7.
func (d *deflated) dynamic() error {
	head, err := d.take(14)
	if err != nil {
		return err
	}
	lits, dists, codes := int(head&31)+257, int(head>>5&31)+1, int(head>>10)+4
	if lits > 286 || dists > 30 {
		return errDeflate
	}
	var of [19]uint8
	left := 1 << lengthBits
	for _, symbol := range lengthOrder[:codes] {
		v, err := d.take(3)
		if err != nil {
			return err
		}
		if of[symbol] = uint8(v); v > 0 {
			left -= 1 << (lengthBits - v)
		}
	}
	var table [1 << lengthBits]uint32
	if left != 0 {
		return errDeflate
	}
	if err := build(table[:], lengthBits, of[:], func(symbol int) uint32 { return kindLiteral | uint32(symbol)<<16 }); err != nil {
		return err
	}
	var lengths [286 + 30]uint8
	if err := d.readLengths(lengths[:lits+dists], table[:]); err != nil {
		return err
	}
	if lengths[256] == 0 {
		return errDeflate // the block could not end
	}
	if err := build(d.lit[:], litBits, lengths[:lits], litEntry); err != nil {
		return err
	}
	return build(d.dist[:], distBits, lengths[lits:lits+dists], distEntry)
}

func (d *deflated) readLengths(lengths []uint8, table []uint32) error {
	for i := 0; i < len(lengths); {
		e, err := d.symbol(table, lengthBits)
		if err != nil {
			return err
		}
		symbol := uint8(e >> 16)
		if symbol < 16 {
			lengths[i] = symbol
			i++
			continue
		}
		width, least, value := uint(7), 11, uint8(0)
		switch symbol {
		case 16:
			if i == 0 {
				return errDeflate
			}
			width, least, value = 2, 3, lengths[i-1]
		case 17:
			width, least = 3, 3
		}
		extra, err := d.take(width)
		if err != nil {
			return err
		}
		again := least + int(extra)
		if again > len(lengths)-i {
			return errDeflate
		}
		for range again {
			lengths[i] = value
			i++
		}
	}
	return nil
}
