package deflate

import "encoding/binary"

// block decodes symbols until the block ends or something may be needed.
func (d *decoder) block() error {
	if len(d.in)-d.pos >= fastInput {
		return d.fast()
	}
	return d.slow()
}

// fast decodes while there is room on both sides for a whole round: four literals
// of 11 bits at most after a fill of 56; or up to three, another fill, and a length
// with its distance, which take 15+5+15+13 bits at most. It is written out, for the
// register and the positions must stay in the processor's.
func (d *decoder) fast() error {
	in, out := d.in, d.out
	pos, made, acc, n := d.pos, d.made, d.acc, d.n
	inEnd, outEnd := len(in)-fastInput, len(out)-slack
	lits, dists, width := d.codes.lits, d.codes.dists, d.codes.lits.width
	mask := uint64(1)<<width - 1
	var err error
	for pos <= inEnd && made <= outEnd {
		acc |= binary.LittleEndian.Uint64(in[pos:]) << (n & 63)
		pos += int((63 - n) >> 3)
		n |= 56
		e := lits.at[acc&mask]
		if e&kindMask == kindLiteral {
			acc >>= e & 63
			n -= uint(e & 63)
			out[made] = byte(e >> 16)
			made++
			e = lits.at[acc&mask]
			if e&kindMask == kindLiteral {
				acc >>= e & 63
				n -= uint(e & 63)
				out[made] = byte(e >> 16)
				made++
				e = lits.at[acc&mask]
				if e&kindMask == kindLiteral {
					acc >>= e & 63
					n -= uint(e & 63)
					out[made] = byte(e >> 16)
					made++
					e = lits.at[acc&mask]
					if e&kindMask == kindLiteral {
						acc >>= e & 63
						n -= uint(e & 63)
						out[made] = byte(e >> 16)
						made++
						continue
					}
				}
			}
			acc |= binary.LittleEndian.Uint64(in[pos:]) << (n & 63)
			pos += int((63 - n) >> 3)
			n |= 56
		}
		if e&kindMask == kindLink {
			e = lits.at[e>>16+entry(acc>>(width&63))&(1<<(e>>8&31)-1)]
			if e&kindMask == kindLiteral {
				acc >>= e & 63
				n -= uint(e & 63)
				out[made] = byte(e >> 16)
				made++
				continue
			}
		}
		acc >>= e & 63
		n -= uint(e & 63)
		if e&kindMask != kindBase {
			if e&kindMask != kindEnd {
				err = ErrDamaged
			}
			d.inBlock = false
			break
		}
		extra := e >> 8 & 31
		length := int(e>>16) + int(acc&(1<<(extra&31)-1))
		acc >>= extra & 31
		n -= uint(extra)

		e = dists.at[acc&(1<<distBits-1)]
		if e&kindMask == kindLink {
			e = dists.at[e>>16+entry(acc>>distBits)&(1<<(e>>8&31)-1)]
		}
		acc >>= e & 63
		n -= uint(e & 63)
		extra = e >> 8 & 31
		distance := int(e>>16) + int(acc&(1<<(extra&31)-1))
		acc >>= extra & 31
		n -= uint(extra)
		if e&kindMask != kindBase || distance > made {
			err = ErrDamaged
			break
		}
		copyMatch(out, made, distance, length)
		made += length
	}
	d.pos, d.made, d.acc, d.n = pos, made, acc, n
	return err
}

// copyMatch repeats length bytes from distance before. It may write up to seven
// bytes more, which are written over later.
func copyMatch(out []byte, made, distance, length int) {
	if distance >= 8 {
		from, to := out[made-distance:], out[made:]
		for i := 0; i < length; i += 8 {
			binary.LittleEndian.PutUint64(to[i:], binary.LittleEndian.Uint64(from[i:]))
		}
		return
	}
	if distance == 1 {
		to, b := out[made:made+length], out[made-1]
		for i := range to {
			to[i] = b
		}
		return
	}
	for i := made; i < made+length; i++ {
		out[i] = out[i-distance]
	}
}

// slow decodes one symbol.
func (d *decoder) slow() error {
	d.fill()
	e := d.codes.lits.find(d.acc)
	d.take(uint(e & 63))
	switch e & kindMask {
	case kindLiteral:
		d.out[d.made] = byte(e >> 16)
		d.made++
		return nil
	case kindEnd:
		d.inBlock = false
		return nil
	case kindBase:
	default:
		return ErrDamaged
	}
	length := int(e>>16) + int(d.take(uint(e>>8&31)))
	e = d.codes.dists.find(d.acc)
	d.take(uint(e & 63))
	distance := int(e>>16) + int(d.take(uint(e>>8&31)))
	if e&kindMask != kindBase || distance > d.made {
		return ErrDamaged
	}
	copyMatch(d.out, d.made, distance, length)
	d.made += length
	return nil
}
