package deflate

import (
	"encoding/binary"
	"errors"
	"io"
)

// ErrDamaged says that the bytes are no deflate stream.
var ErrDamaged = errors.New("the compressed data is damaged")

const (
	// window is how far back a stream may refer to its output.
	window = 32 << 10

	// slack is how many bytes of out must be free for decode to go on.
	slack = 2*8 + maxMatch + 8

	// ahead is how many bytes of input decode wants to see, unless they are the
	// last: the head of a block is no longer.
	ahead = 600

	maxMatch  = 258
	fastInput = 16 // bytes of input that one round of the fast loop may read
)

// want is the need of a decoder that cannot go on.
type want int

// A decoder may need:
const (
	wantNothing want = iota // the stream has ended; in[pos:] is what follows it
	wantInput               // in[pos:] is shorter than ahead, and not the last there is
	wantRoom                // out[made:] is shorter than slack
)

// decoder decodes one stream. Between calls of decode its user may replace in and out
// by slices that hold the same bytes at other places, and set pos and made to these:
// of in the eight bytes before pos, of out the last window bytes before made.
type decoder struct {
	in   []byte
	pos  int // in[pos:] is to come
	out  []byte
	made int // the end of the output so far

	acc  uint64 // bits taken from in and not used, the next lowest
	n    uint   // how many; above them acc may hold some of the bits that follow
	over uint   // bytes of zeros that were taken behind the end of in

	final   bool
	inBlock bool
	stored  int // bytes of a stored block to come

	codes codes
}

// codes are the tables of the present block.
type codes struct {
	width      uint // of the first tables for literals and lengths
	lits       *litTable
	dists      *distTable
	ownLits    litTable
	ownDists   distTable
	codeWidths [1 << widthBits]entry
	builder    builder
	head       head
}

// newDecoder gives a decoder. Of litBits of a code the symbol is looked up at once: 9 for
// streams of a few kilobytes, as a table takes time to make; 11, the most, for long
// ones.
func newDecoder(litBits uint) *decoder {
	return &decoder{codes: codes{width: min(max(litBits, 9), maxLitBits)}}
}

// reset begins another stream, at in[pos:].
func (d *decoder) reset() {
	d.acc, d.n, d.over, d.final, d.inBlock, d.stored = 0, 0, 0, false, false, 0
}

// decode goes on until it needs something. ended tells that no input follows in; a
// stream that is cut off then is io.ErrUnexpectedEOF.
func (d *decoder) decode(ended bool) (want, error) {
	for {
		switch {
		case d.final && !d.inBlock && d.stored == 0:
			if !d.align() {
				return wantNothing, io.ErrUnexpectedEOF
			}
			return wantNothing, nil
		case d.made > len(d.out)-slack:
			return wantRoom, nil
		case !ended && len(d.in)-d.pos < ahead:
			return wantInput, nil
		}
		err := d.step()
		if d.over > d.n>>3 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return wantNothing, err
		}
	}
}

// step begins a block, or makes some output.
func (d *decoder) step() error {
	switch {
	case d.stored > 0:
		return d.copyStored()
	case d.inBlock:
		return d.block()
	}
	d.fill()
	d.final = d.take(1) == 1
	switch d.take(2) {
	case 0:
		return d.beginStored()
	case 1:
		d.codes.lits, d.codes.dists, d.inBlock = &fixed.lits, &fixed.dists, true
		return nil
	case 2:
		d.codes.lits, d.codes.dists, d.inBlock = &d.codes.ownLits, &d.codes.ownDists, true
		return d.tables()
	}
	return ErrDamaged
}

// fill takes bits, so that there are at least 56, of zeros behind the end of in.
func (d *decoder) fill() {
	if d.pos+8 <= len(d.in) {
		d.acc |= binary.LittleEndian.Uint64(d.in[d.pos:]) << (d.n & 63)
		d.pos += int(63-d.n) >> 3
		d.n |= 56
		return
	}
	d.acc &= 1<<d.n - 1
	for d.n < 56 {
		if d.pos < len(d.in) {
			d.acc |= uint64(d.in[d.pos]) << d.n
			d.pos++
		} else {
			d.over++
		}
		d.n += 8
	}
}

// take gives the next few bits; fill was called for them.
func (d *decoder) take(k uint) uint {
	v := uint(d.acc) & (1<<k - 1)
	d.acc >>= k
	d.n -= k
	return v
}

// align goes on at the next whole byte; false: that stands behind the end.
func (d *decoder) align() bool {
	whole := d.n >> 3
	if d.over > whole {
		return false
	}
	d.pos -= int(whole - d.over)
	d.acc, d.n, d.over = 0, 0, 0
	return true
}

func (d *decoder) beginStored() error {
	if !d.align() || len(d.in)-d.pos < 4 {
		return io.ErrUnexpectedEOF
	}
	size := binary.LittleEndian.Uint16(d.in[d.pos:])
	if size != ^binary.LittleEndian.Uint16(d.in[d.pos+2:]) {
		return ErrDamaged
	}
	d.pos += 4
	d.stored = int(size)
	return nil
}

func (d *decoder) copyStored() error {
	n := copy(d.out[d.made:], d.in[d.pos:min(len(d.in), d.pos+d.stored)])
	if n == 0 {
		return io.ErrUnexpectedEOF
	}
	d.pos, d.made, d.stored = d.pos+n, d.made+n, d.stored-n
	return nil
}
