package deflate

// widthOrder is the order in which the lengths of the code of lengths stand.
var widthOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// tables reads the codes at the head of a block (RFC 1951, 3.2.7).
func (d *Decoder) tables() error {
	lits, dists, widths := 257+d.take(5), 1+d.take(5), 4+d.take(4)
	if lits > 286 || dists > 30 {
		return ErrDamaged
	}
	var of [19]uint8
	left := 1 << widthBits
	for _, i := range widthOrder[:widths] {
		d.fill()
		v := d.take(3)
		if of[i] = uint8(v); v > 0 {
			left -= 1 << (widthBits - v)
		}
	}
	all, b := d.builder.lengths[:lits+dists], &d.builder
	if left != 0 || !b.build(d.codeWidths[:], widthBits, of[:], plainMeanings) || !d.readLengths(all) || all[256] == 0 {
		return ErrDamaged // without a code for its end, the block could not end
	}
	d.ownLits.width = d.width
	if !b.build(d.ownLits.at[:], d.width, all[:lits], litMeanings) || !b.build(d.ownDists.at[:], distBits, all[lits:], distMeanings) {
		return ErrDamaged
	}
	return nil
}

func (d *Decoder) readLengths(all []uint8) bool {
	for i := 0; i < len(all); {
		if d.n < widthBits+7 {
			d.fill()
			if d.over > 8 {
				return false
			}
		}
		e := d.codeWidths[d.acc&(1<<widthBits-1)]
		d.take(uint(e & 63))
		v, again := uint8(e>>16), uint(1)
		switch v {
		case 16:
			if i == 0 {
				return false
			}
			v, again = all[i-1], 3+d.take(2)
		case 17:
			v, again = 0, 3+d.take(3)
		case 18:
			v, again = 0, 11+d.take(7)
		}
		if again > uint(len(all)-i) {
			return false
		}
		for range again {
			all[i] = v
			i++
		}
	}
	return true
}
