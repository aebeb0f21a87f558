package bags

import (
	"encoding/binary"
	"errors"
	"io"
)

// A deflate decoder (RFC 1951) for what most archives are packed with. The
// libraries' decoders are about two thirds as fast as zlib, and unpacking is little
// else. The rules are:
//
//   - input and output are slices, and the bits of the input stand in one register
//     that is filled eight bytes at a time: a symbol costs no call and no copy into
//     a window of its own;
//   - one look in a table tells the symbol, its extra bits and its length together;
//     codes longer than tableBits go on in a second table;
//   - near the ends of input and output the same steps are done one by one, with
//     every bound checked;
//   - a code that is over-subscribed, or incomplete in a way that zlib refuses, is
//     an error, and so is a distance beyond the output so far.

const (
	window     = 32 << 10
	outBuffer  = window + 256<<10
	inBuffer   = 64 << 10
	maxMatch   = 258
	fastInput  = 16                 // bytes of input that one round of the fast loop may read
	fastOutput = 2*8 + maxMatch + 8 // bytes of output that one round may write

	litBits  = 11
	distBits = 8

	// Every second table has room for the longest code; two codes at least share one.
	litTable  = 1<<litBits + 143<<(15-litBits)
	distTable = 1<<distBits + 15<<(15-distBits)
)

// A table entry: the kind and value of a symbol, the number of its extra bits and
// of the bits of its code.
//
//	bits 0–7    bits of the code
//	bits 8–12   extra bits; of a link, the bits of the second table
//	bits 13–15  kind
//	bits 16–31  literal, base length, base distance, or where the second table is
const (
	kindBad     = 0 << 13
	kindLiteral = 1 << 13
	kindEnd     = 2 << 13
	kindBase    = 3 << 13
	kindLink    = 4 << 13
	kindMask    = 7 << 13
)

var errDeflate = errors.New("the compressed data is damaged")

// deflated reads one deflate stream from in and stops at its end, at the byte.
type deflated struct {
	src io.Reader

	in      []byte // what was read; in[pos:] is to come
	pos     int
	srcErr  error
	acc     uint64 // bits taken from in and not used, the next lowest
	n       uint   // how many
	out     []byte // the last window bytes, then what was made since
	made    int    // end of what was made
	given   int    // end of what was handed on
	final   bool
	stored  int // bytes of a stored block to come
	inBlock bool
	err     error
	lit     [litTable]uint32
	dist    [distTable]uint32
}

func (d *deflated) reset(r io.Reader) {
	d.src, d.pos, d.srcErr, d.acc, d.n = r, 0, nil, 0, 0
	d.in = d.in[:0]
	if d.out == nil {
		d.out, d.in = make([]byte, outBuffer), make([]byte, 0, inBuffer)
	}
	d.made, d.given, d.final, d.stored, d.inBlock, d.err = 0, 0, false, 0, false, nil
}

// Read gives what was inflated; io.EOF at the end of the last block.
func (d *deflated) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for d.given == d.made {
		if d.err != nil {
			return 0, d.err
		}
		if d.made > len(d.out)-fastOutput {
			// What was handed on is needed as the window only.
			keep := min(d.made, window)
			copy(d.out, d.out[d.made-keep:d.made])
			d.made, d.given = keep, keep
		}
		d.err = d.step()
	}
	n := copy(p, d.out[d.given:d.made])
	d.given += n
	return n, nil
}

// step makes some output, or begins a block.
func (d *deflated) step() error {
	switch {
	case d.stored > 0:
		return d.copyStored()
	case d.inBlock:
		return d.block()
	case d.final:
		d.giveBack()
		return io.EOF
	}
	head, err := d.take(3)
	if err != nil {
		return err
	}
	d.final = head&1 != 0
	switch head >> 1 {
	case 0:
		return d.beginStored()
	case 1:
		d.inBlock = true
		return d.fixed()
	case 2:
		d.inBlock = true
		return d.dynamic()
	}
	return errDeflate
}

// more reads input; what is not used is kept.
func (d *deflated) more() error {
	if d.srcErr != nil {
		return d.srcErr
	}
	// Eight bytes before are kept: those in the register may be given back.
	begin := max(0, d.pos-8)
	rest := copy(d.in[:cap(d.in)], d.in[begin:])
	d.in, d.pos = d.in[:rest], d.pos-begin
	n, err := d.src.Read(d.in[rest:cap(d.in)])
	d.in = d.in[:rest+n]
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	d.srcErr = err
	if n > 0 {
		return nil
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// need makes the register hold at least k bits, k at most 48.
func (d *deflated) need(k uint) error {
	for d.n < k {
		if d.pos == len(d.in) {
			if err := d.more(); err != nil {
				return err
			}
		}
		d.acc |= uint64(d.in[d.pos]) << d.n
		d.pos++
		d.n += 8
	}
	return nil
}

func (d *deflated) take(k uint) (uint, error) {
	if err := d.need(k); err != nil {
		return 0, err
	}
	v := uint(d.acc & (1<<k - 1))
	d.acc >>= k
	d.n -= k
	return v, nil
}

// giveBack returns whole bytes from the register to the input.
func (d *deflated) giveBack() {
	d.pos -= int(d.n / 8)
	d.acc, d.n = 0, 0
}

func (d *deflated) beginStored() error {
	drop := d.n % 8
	d.acc >>= drop
	d.n -= drop
	size, err := d.take(16)
	if err != nil {
		return err
	}
	check, err := d.take(16)
	if err != nil {
		return err
	}
	if size != check^0xffff {
		return errDeflate
	}
	d.giveBack()
	d.stored = int(size)
	return nil
}

func (d *deflated) copyStored() error {
	if d.pos == len(d.in) {
		if err := d.more(); err != nil {
			return err
		}
	}
	n := copy(d.out[d.made:], d.in[d.pos:min(len(d.in), d.pos+d.stored)])
	d.pos, d.made, d.stored = d.pos+n, d.made+n, d.stored-n
	return nil
}

// block decodes symbols until the block ends or the output is full.
func (d *deflated) block() error {
	for {
		if len(d.in)-d.pos < fastInput && d.srcErr == nil {
			if err := d.more(); err != nil && d.srcErr == nil {
				return err
			}
		}
		if err := d.fast(); err != nil || !d.inBlock {
			return err
		}
		if d.made > len(d.out)-fastOutput {
			return nil
		}
		if err := d.slow(); err != nil || !d.inBlock {
			return err
		}
	}
}

// fast decodes while there is room on both sides for a whole round: four literals
// of 11 bits at most after a fill of 56; or up to three, another fill, and a length
// with its distance, which take 15+5+15+13 bits at most. It is written out, for the
// register and the positions must stay in the processor's.
func (d *deflated) fast() error {
	in, out := d.in, d.out
	pos, made, acc, n := d.pos, d.made, d.acc, d.n
	inEnd, outEnd := len(in)-fastInput, len(out)-fastOutput
	var err error
	for pos <= inEnd && made <= outEnd {
		acc |= binary.LittleEndian.Uint64(in[pos:]) << (n & 63)
		pos += int((63 - n) >> 3)
		n |= 56
		e := d.lit[acc&(1<<litBits-1)]
		if e&kindMask == kindLiteral {
			acc >>= e & 63
			n -= uint(e & 63)
			out[made] = byte(e >> 16)
			made++
			e = d.lit[acc&(1<<litBits-1)]
			if e&kindMask == kindLiteral {
				acc >>= e & 63
				n -= uint(e & 63)
				out[made] = byte(e >> 16)
				made++
				e = d.lit[acc&(1<<litBits-1)]
				if e&kindMask == kindLiteral {
					acc >>= e & 63
					n -= uint(e & 63)
					out[made] = byte(e >> 16)
					made++
					e = d.lit[acc&(1<<litBits-1)]
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
			e = d.lit[e>>16+uint32(acc>>litBits)&(1<<(e>>8&31)-1)]
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
				err = errDeflate
			}
			d.inBlock = false
			break
		}
		extra := e >> 8 & 31
		length := int(e>>16) + int(acc&(1<<(extra&31)-1))
		acc >>= extra & 31
		n -= uint(extra)

		e = d.dist[acc&(1<<distBits-1)]
		if e&kindMask == kindLink {
			e = d.dist[e>>16+uint32(acc>>distBits)&(1<<(e>>8&31)-1)]
		}
		if e&kindMask != kindBase {
			err = errDeflate
			break
		}
		acc >>= e & 63
		n -= uint(e & 63)
		extra = e >> 8 & 31
		distance := int(e>>16) + int(acc&(1<<(extra&31)-1))
		acc >>= extra & 31
		n -= uint(extra)
		if distance > made {
			err = errDeflate
			break
		}
		copyMatch(out, made, distance, length)
		made += length
	}
	d.pos, d.made, d.acc, d.n = pos, made, acc&(1<<(n&63)-1), n
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

// slow decodes one symbol, with every bound checked.
func (d *deflated) slow() error {
	e, err := d.symbol(d.lit[:], litBits)
	if err != nil {
		return err
	}
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
		return errDeflate
	}
	extra, err := d.take(uint(e >> 8 & 31))
	if err != nil {
		return err
	}
	length := int(e>>16) + int(extra)
	if e, err = d.symbol(d.dist[:], distBits); err != nil {
		return err
	}
	if e&kindMask != kindBase {
		return errDeflate
	}
	if extra, err = d.take(uint(e >> 8 & 31)); err != nil {
		return err
	}
	distance := int(e>>16) + int(extra)
	if distance > d.made {
		return errDeflate
	}
	copyMatch(d.out, d.made, distance, length)
	d.made += length
	return nil
}

// symbol reads a code, taking no more input than it needs: the stream may end with
// it.
func (d *deflated) symbol(table []uint32, width uint) (uint32, error) {
	for {
		e := table[d.acc&(1<<width-1)]
		if e&kindMask == kindLink {
			e = table[e>>16+uint32(d.acc>>width)&(1<<(e>>8&31)-1)]
		}
		if size := uint(e & 0xff); e&kindMask != kindBad && size <= d.n {
			d.acc >>= size
			d.n -= size
			return e, nil
		}
		if d.n >= 15 {
			return 0, errDeflate
		}
		if err := d.need(d.n + 1); err != nil {
			return 0, err
		}
	}
}
