package odb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zlib"
)

const maxStored = 65535

// appendStored appends data as a zlib stream of stored blocks.
func appendStored(dst, data []byte) []byte {
	dst = append(dst, 0x78, 0x01)
	rest := data
	for {
		n := min(len(rest), maxStored)
		final := byte(0)
		if n == len(rest) {
			final = 1
		}
		dst = append(dst, final, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
		dst = append(dst, rest[:n]...)
		rest = rest[n:]
		if final == 1 {
			break
		}
	}
	return binary.BigEndian.AppendUint32(dst, adler32.Checksum(data))
}

// deflater writes zlib streams at level 1.
type deflater struct {
	w   *flate.Writer
	out appendWriter
}

type appendWriter struct{ b []byte }

func (a *appendWriter) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}

var deflaters = sync.Pool{New: func() any {
	d := &deflater{}
	w, err := flate.NewWriter(&d.out, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	d.w = w
	return d
}}

// append appends data as a zlib stream. Writing to memory cannot fail.
func (d *deflater) append(dst, data []byte) []byte {
	d.out.b = append(dst, 0x78, 0x01)
	d.w.Reset(&d.out)
	if _, err := d.w.Write(data); err != nil {
		panic(err)
	}
	if err := d.w.Close(); err != nil {
		panic(err)
	}
	dst = binary.BigEndian.AppendUint32(d.out.b, adler32.Checksum(data))
	d.out.b = nil
	return dst
}

var errCorrupt = errors.New("corrupt object")

// inflater reads zlib streams; it is pooled because its tables are large.
type inflater struct {
	src bytes.Reader
	r   io.ReadCloser
}

var inflaters = sync.Pool{New: func() any { return &inflater{} }}

// wholeAtMost is how many times its packed length an object may have for the short
// way to be tried on it: above it, data most likely ends before the stream.
const wholeAtMost = 8

// scratches are what objects are inflated in: the decoder wants room behind them.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

// inflate gives the size bytes a zlib stream at the head of data holds. When
// data ends before the stream, more gives the same stream in full.
func inflate(data []byte, size int, more func() (io.Reader, error)) ([]byte, error) {
	if size <= wholeAtMost*len(data) {
		scratch := scratches.Get().(*[]byte)
		defer scratches.Put(scratch)
		if out, ok := inflateWhole(*scratch, size, data); ok {
			*scratch = out
			return bytes.Clone(out), nil
		}
	}
	in := inflaters.Get().(*inflater)
	defer inflaters.Put(in)
	in.src.Reset(data)
	out, err := in.read(&in.src, size)
	if err == nil || more == nil {
		return out, err
	}
	r, err := more()
	if err != nil {
		return nil, err
	}
	return in.read(r, size)
}

func (in *inflater) read(src io.Reader, size int) ([]byte, error) {
	if err := in.reset(src); err != nil {
		return nil, err
	}
	out := make([]byte, size)
	if _, err := io.ReadFull(in.r, out); err != nil {
		return nil, fmt.Errorf("%w: inflate: %w", errCorrupt, err)
	}
	var end [1]byte
	if n, err := in.r.Read(end[:]); n != 0 || err != io.EOF { // EOF comes after the checksum was compared
		return nil, fmt.Errorf("%w: inflate: wrong length or checksum", errCorrupt)
	}
	return out, nil
}

func (in *inflater) reset(src io.Reader) (err error) {
	if in.r == nil {
		in.r, err = zlib.NewReader(src)
	} else {
		err = in.r.(zlib.Resetter).Reset(src, nil)
	}
	if err != nil {
		return fmt.Errorf("%w: inflate: %w", errCorrupt, err)
	}
	return nil
}
