package deflate

import (
	"errors"
	"io"
)

const (
	outBuffer = window + 256<<10
	inBuffer  = 64 << 10
	longBits  = 11 // members of archives are long: a large table is worth its making
)

// Reader reads streams from an io.Reader, one after the other, and stops at their ends, at
// the byte. It holds some 400 KB; it should be kept. It belongs to one goroutine.
type Reader struct {
	src    io.Reader
	srcErr error
	dec    *decoder
	given  int // end of the decoder's output that was handed on
	err    error
}

// NewReader makes a Reader; Reset gives it a source.
func NewReader() *Reader {
	r := &Reader{dec: newDecoder(longBits)}
	r.dec.out, r.dec.in = make([]byte, outBuffer), make([]byte, 0, inBuffer)
	return r
}

// Reset begins a stream at the head of src; nil lets go of the source.
func (r *Reader) Reset(src io.Reader) {
	r.src, r.srcErr = src, nil
	r.dec.in, r.dec.pos = r.dec.in[:0], 0
	r.Next()
}

// Next begins another stream in the same input.
func (r *Reader) Next() {
	r.dec.reset()
	r.dec.made, r.given, r.err = 0, 0, nil
}

// Read gives inflated bytes; io.EOF at the end of the last block.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for r.given == r.dec.made {
		if r.err != nil {
			return 0, r.err
		}
		r.err = r.step()
	}
	n := copy(p, r.dec.out[r.given:r.dec.made])
	r.given += n
	return n, nil
}

// step makes some output, or room for it.
func (r *Reader) step() error {
	need, err := r.dec.decode(r.srcErr != nil)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) && r.srcErr != nil:
		return r.srcErr // which may be another fault than the end
	case err != nil:
		return err
	case need == wantInput:
		_ = r.more() // the input so far is decoded to its end first
	case need == wantRoom && r.given == r.dec.made:
		// Bytes that were handed on are needed as the window only.
		keep := min(r.dec.made, window)
		copy(r.dec.out, r.dec.out[r.dec.made-keep:r.dec.made])
		r.dec.made, r.given = keep, keep
	case need == wantNothing:
		return io.EOF
	}
	return nil
}

// more reads input; unused input is kept.
func (r *Reader) more() error {
	if r.srcErr != nil {
		return r.srcErr
	}
	// Eight bytes before are kept: those the decoder has taken may be given back.
	in := r.dec.in
	begin := max(0, r.dec.pos-8)
	rest := copy(in[:cap(in)], in[begin:])
	n, err := r.src.Read(in[rest:cap(in)])
	r.dec.in, r.dec.pos = in[:rest+n], r.dec.pos-begin
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	r.srcErr = err
	if n > 0 {
		return nil
	}
	return err
}

// Plain fills p with the bytes that stand around a stream.
func (r *Reader) Plain(p []byte) error {
	for len(p) > 0 {
		if r.dec.pos == len(r.dec.in) {
			if err := r.more(); err != nil {
				return err
			}
		}
		n := copy(p, r.dec.in[r.dec.pos:])
		r.dec.pos += n
		p = p[n:]
	}
	return nil
}

// Rest gives some of the input that follows a stream, without taking it; empty at the end
// of the input, or before a fault that the next read tells.
func (r *Reader) Rest() []byte {
	if r.dec.pos == len(r.dec.in) {
		_ = r.more() // the next read tells
	}
	return r.dec.in[r.dec.pos:]
}

// Ended reports whether the input has no more bytes.
func (r *Reader) Ended() bool {
	return r.dec.pos == len(r.dec.in) && errors.Is(r.more(), io.ErrUnexpectedEOF)
}
