package deflate

import (
	"encoding/binary"
	"errors"
	"io"
)

// ErrDamaged says that the bytes are no deflate stream.
var ErrDamaged = errors.New("the compressed data is damaged")

const (
	// Window is how far back a stream may refer to its output.
	Window = 32 << 10

	// Slack is how many bytes of Out must be free for Decode to go on.
	Slack = 2*8 + maxMatch + 8

	// Ahead is how many bytes of input Decode wants to see, unless they are the
	// last: the head of a block is no longer.
	Ahead = 600

	maxMatch  = 258
	fastInput = 16 // bytes of input that one round of the fast loop may read
)

// Want is what a Decoder needs to go on.
type Want int

// What a Decoder may need.
const (
	Nothing Want = iota // the stream has ended; In[Pos:] is what follows it
	Input               // In[Pos:] is shorter than Ahead, and not the last there is
	Room                // Out[Made:] is shorter than Slack
)

// Decoder decodes one stream. Between calls of Decode its user may replace In and Out
// by slices that hold the same bytes at other places, and set Pos and Made to these:
// of In the eight bytes before Pos, of Out the last Window bytes before Made.
type Decoder struct {
	In   []byte
	Pos  int // In[Pos:] is to come
	Out  []byte
	Made int // the end of what was made

	acc  uint64 // bits taken from In and not used, the next lowest
	n    uint   // how many; above them acc may hold some of the bits that follow
	over uint   // bytes of zeros that were taken behind the end of In

	final   bool
	inBlock bool
	stored  int // bytes of a stored block to come

	width      uint // of the first tables for literals and lengths
	lits       *litTable
	dists      *distTable
	ownLits    litTable
	ownDists   distTable
	codeWidths [1 << widthBits]entry
	builder    builder
	head       head
}

// New gives a decoder. Of litBits of a code the symbol is looked up at once: 9 for
// streams of a few kilobytes, as a table takes time to make; 11, the most, for long
// ones.
func New(litBits uint) *Decoder { return &Decoder{width: min(max(litBits, 9), maxLitBits)} }

// Reset begins another stream, at In[Pos:].
func (d *Decoder) Reset() {
	d.acc, d.n, d.over, d.final, d.inBlock, d.stored = 0, 0, 0, false, false, 0
}

// Decode goes on until it needs something. ended tells that nothing follows In; a
// stream that is cut off then is io.ErrUnexpectedEOF.
func (d *Decoder) Decode(ended bool) (Want, error) {
	for {
		switch {
		case d.final && !d.inBlock && d.stored == 0:
			if !d.align() {
				return Nothing, io.ErrUnexpectedEOF
			}
			return Nothing, nil
		case d.Made > len(d.Out)-Slack:
			return Room, nil
		case !ended && len(d.In)-d.Pos < Ahead:
			return Input, nil
		}
		err := d.step()
		if d.over > d.n>>3 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return Nothing, err
		}
	}
}

// step begins a block, or makes some output.
func (d *Decoder) step() error {
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
		d.lits, d.dists, d.inBlock = &fixed.lits, &fixed.dists, true
		return nil
	case 2:
		d.lits, d.dists, d.inBlock = &d.ownLits, &d.ownDists, true
		return d.tables()
	}
	return ErrDamaged
}

// fill takes bits, so that there are at least 56, of zeros behind the end of In.
func (d *Decoder) fill() {
	if d.Pos+8 <= len(d.In) {
		d.acc |= binary.LittleEndian.Uint64(d.In[d.Pos:]) << (d.n & 63)
		d.Pos += int(63-d.n) >> 3
		d.n |= 56
		return
	}
	d.acc &= 1<<d.n - 1
	for d.n < 56 {
		if d.Pos < len(d.In) {
			d.acc |= uint64(d.In[d.Pos]) << d.n
			d.Pos++
		} else {
			d.over++
		}
		d.n += 8
	}
}

// take gives the next few bits; fill was called for them.
func (d *Decoder) take(k uint) uint {
	v := uint(d.acc) & (1<<k - 1)
	d.acc >>= k
	d.n -= k
	return v
}

// align goes on at the next whole byte; false: that stands behind the end.
func (d *Decoder) align() bool {
	whole := d.n >> 3
	if d.over > whole {
		return false
	}
	d.Pos -= int(whole - d.over)
	d.acc, d.n, d.over = 0, 0, 0
	return true
}

func (d *Decoder) beginStored() error {
	if !d.align() || len(d.In)-d.Pos < 4 {
		return io.ErrUnexpectedEOF
	}
	size := binary.LittleEndian.Uint16(d.In[d.Pos:])
	if size != ^binary.LittleEndian.Uint16(d.In[d.Pos+2:]) {
		return ErrDamaged
	}
	d.Pos += 4
	d.stored = int(size)
	return nil
}

func (d *Decoder) copyStored() error {
	n := copy(d.Out[d.Made:], d.In[d.Pos:min(len(d.In), d.Pos+d.stored)])
	if n == 0 {
		return io.ErrUnexpectedEOF
	}
	d.Pos, d.Made, d.stored = d.Pos+n, d.Made+n, d.stored-n
	return nil
}
