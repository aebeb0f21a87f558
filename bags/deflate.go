package bags

import (
	"errors"
	"io"

	"bagpipe/layout/deflate"
)

const (
	outBuffer = deflate.Window + 256<<10
	inBuffer  = 64 << 10
	litBits   = 11 // members are long: a large table is worth its making
)

// deflated reads deflate streams from a reader and stops at their ends, at the byte.
type deflated struct {
	src    io.Reader
	srcErr error
	dec    *deflate.Decoder
	given  int // end of what was handed on of the decoder's output
	err    error
}

func newDeflated() *deflated {
	d := &deflated{dec: deflate.New(litBits)}
	d.dec.Out, d.dec.In = make([]byte, outBuffer), make([]byte, 0, inBuffer)
	return d
}

func (d *deflated) reset(r io.Reader) {
	d.src, d.srcErr = r, nil
	d.dec.In, d.dec.Pos = d.dec.In[:0], 0
	d.begin()
}

// Read gives what was inflated; io.EOF at the end of the last block.
func (d *deflated) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for d.given == d.dec.Made {
		if d.err != nil {
			return 0, d.err
		}
		d.err = d.step()
	}
	n := copy(p, d.dec.Out[d.given:d.dec.Made])
	d.given += n
	return n, nil
}

// step makes some output, or room for it.
func (d *deflated) step() error {
	want, err := d.dec.Decode(d.srcErr != nil)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) && d.srcErr != nil:
		return d.srcErr // which may be another fault than the end
	case err != nil:
		return err
	case want == deflate.Input:
		_ = d.more() // what is there is decoded to its end first
	case want == deflate.Room && d.given == d.dec.Made:
		// What was handed on is needed as the window only.
		keep := min(d.dec.Made, deflate.Window)
		copy(d.dec.Out, d.dec.Out[d.dec.Made-keep:d.dec.Made])
		d.dec.Made, d.given = keep, keep
	case want == deflate.Nothing:
		return io.EOF
	}
	return nil
}

// used tells whether all that was read has been decoded.
func (d *deflated) used() bool { return d.dec.Pos == len(d.dec.In) }

// more reads input; what is not used is kept.
func (d *deflated) more() error {
	if d.srcErr != nil {
		return d.srcErr
	}
	// Eight bytes before are kept: those the decoder has taken may be given back.
	in := d.dec.In
	begin := max(0, d.dec.Pos-8)
	rest := copy(in[:cap(in)], in[begin:])
	n, err := d.src.Read(in[rest:cap(in)])
	d.dec.In, d.dec.Pos = in[:rest+n], d.dec.Pos-begin
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	d.srcErr = err
	if n > 0 {
		return nil
	}
	return err
}
