package deflate

// widthOrder is the order in which the lengths of the code of lengths stand.
var widthOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// head is the description of the codes at the head of a block.
type head struct {
	lits, dists int
	widths      [19]coded
	litCodes    [maxLits]coded
	distCodes   [maxDists]coded
}

// tables reads the codes at the head of a block (RFC 1951, 3.2.7).
func (d *decoder) tables() error {
	h, b := &d.codes.head, &d.codes.builder
	h.lits, h.dists = int(257+d.take(5)), int(1+d.take(5))
	if n := 4 + d.take(4); h.lits > 286 || h.dists > 30 || !b.build(d.codes.codeWidths[:], widthBits, d.readWidths(int(n)), plainMeanings) {
		return ErrDamaged
	}
	lits, dists, ok := d.readLengths()
	if !ok {
		return ErrDamaged
	}
	d.codes.ownLits.width = d.codes.width
	if !b.build(d.codes.ownLits.at[:], d.codes.width, lits, litMeanings) || !b.build(d.codes.ownDists.at[:], distBits, dists, distMeanings) {
		return ErrDamaged
	}
	return nil
}

// readWidths reads the code that the lengths of the others are written in.
func (d *decoder) readWidths(n int) []coded {
	var of [19]uint8
	for _, symbol := range widthOrder[:n] {
		d.fill()
		of[symbol] = uint8(d.take(3))
	}
	used := d.codes.head.widths[:0]
	for symbol, length := range of {
		if length > 0 {
			used = append(used, coded{uint16(symbol), length})
		}
	}
	return used
}

// readLengths reads which symbols have codes of which lengths; those without codes, the
// most, stand together. Without a code for its end, a block could not end.
func (d *decoder) readLengths() (lits, dists []coded, ok bool) {
	h := &d.codes.head
	lits, dists = h.litCodes[:0], h.distCodes[:0]
	length := uint8(0)
	for i, all := 0, h.lits+h.dists; i < all; {
		if d.n < widthBits+7 {
			d.fill()
			if d.over > 8 {
				return nil, nil, false
			}
		}
		e := d.codes.codeWidths[d.acc&(1<<widthBits-1)]
		d.take(uint(e & 63))
		again := uint(1)
		switch symbol := uint8(e >> 16); {
		case e == kindBad || symbol == 16 && i == 0:
			return nil, nil, false
		case symbol == 16:
			again = 3 + d.take(2)
		case symbol == 17:
			length, again = 0, 3+d.take(3)
		case symbol == 18:
			length, again = 0, 11+d.take(7)
		default:
			length = symbol
		}
		if again > uint(all-i) {
			return nil, nil, false
		}
		end := i + int(again)
		for ; i < end && length > 0; i++ {
			if i >= h.lits {
				dists = append(dists, coded{uint16(i - h.lits), length})
				continue
			}
			lits = append(lits, coded{uint16(i), length})
			ok = ok || i == 256
		}
		i = end
	}
	return lits, dists, ok
}
