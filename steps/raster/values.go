package raster

import (
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/image/ccitt"
	"golang.org/x/image/tiff/lzw"
)

// stream decompresses a block. What is not compressed can be skipped without reading.
func (s *sampler) stream(r *io.SectionReader) (io.Reader, error) {
	in := io.Reader(r)
	if s.p.fillOrder == 2 {
		in = &fromRight{r}
	}
	switch s.p.Compression {
	case 1:
		return in, nil
	case 4:
		if s.p.Bits != 1 || s.p.Bands != 1 {
			return nil, fmt.Errorf("compression %s of %d bands of %d bits is not read", s.p.CompressionName(), s.p.Bands, s.p.Bits)
		}
		return ccitt.NewReader(in, ccitt.MSB, ccitt.Group4, int(s.p.BlockWidth), ccitt.AutoDetectHeight, &ccitt.Options{Invert: true}), nil
	case 5:
		return lzw.NewReader(in, lzw.MSB, 8), nil
	case 8, 32946:
		return zlib.NewReader(in)
	case 32773:
		return &packBits{r: in}, nil
	case 50000:
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("compression %s is not read", s.p.CompressionName())
}

// fromRight turns the bits of each byte round, of files that count them from the right.
type fromRight struct{ r io.Reader }

func (f *fromRight) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	for i, b := range p[:n] {
		p[i] = bits.Reverse8(b)
	}
	return n, err
}

// valueOf gives what reads the n-th value of a row.
func (s *sampler) valueOf() (func(row []byte, n int64) float32, error) {
	order, signed := s.f.order, s.p.Sample == 2
	switch kind := s.p.Sample; {
	case kind == 3 && s.p.Bits == 32:
		return func(b []byte, n int64) float32 { return math.Float32frombits(order.Uint32(b[4*n:])) }, nil
	case kind == 3 && s.p.Bits == 64:
		return func(b []byte, n int64) float32 { return float32(math.Float64frombits(order.Uint64(b[8*n:]))) }, nil
	case kind == 3 && s.p.Bits == 16:
		return func(b []byte, n int64) float32 { return half(order.Uint16(b[2*n:])) }, nil
	case kind > 2 && kind != 4:
	case s.p.Bits == 8 && signed:
		return func(b []byte, n int64) float32 { return float32(int8(b[n])) }, nil
	case s.p.Bits == 8:
		return func(b []byte, n int64) float32 { return float32(b[n]) }, nil
	case s.p.Bits == 16 && signed:
		return func(b []byte, n int64) float32 { return float32(int16(order.Uint16(b[2*n:]))) }, nil
	case s.p.Bits == 16:
		return func(b []byte, n int64) float32 { return float32(order.Uint16(b[2*n:])) }, nil
	case s.p.Bits == 32 && signed:
		return func(b []byte, n int64) float32 { return float32(int32(order.Uint32(b[4*n:]))) }, nil
	case s.p.Bits == 32:
		return func(b []byte, n int64) float32 { return float32(order.Uint32(b[4*n:])) }, nil
	case s.p.Bits == 64 && signed:
		return func(b []byte, n int64) float32 { return float32(int64(order.Uint64(b[8*n:]))) }, nil
	case s.p.Bits == 64:
		return func(b []byte, n int64) float32 { return float32(order.Uint64(b[8*n:])) }, nil
	case s.p.Bits < 32 && !signed: // packed, whatever the order of bytes is
		size := int64(s.p.Bits)
		return func(b []byte, n int64) float32 {
			var v uint64
			for at := n * size / 8; at <= (n*size+size-1)/8; at++ {
				v = v<<8 | uint64(b[at])
			}
			return float32(v >> (7 - (n*size+size-1)%8) & (1<<size - 1))
		}, nil
	}
	return nil, fmt.Errorf("values of type %s are not read", s.p.Type())
}

// half is a floating point number of 16 bits (IEEE 754, binary16).
func half(b uint16) float32 {
	sign, exponent, fraction := 1-2*float64(b>>15), int(b>>10&31), float64(b&1023)/1024
	switch exponent {
	case 0:
		return float32(sign * math.Ldexp(fraction, -14))
	case 31:
		if fraction > 0 {
			return float32(math.NaN())
		}
		return float32(math.Inf(int(sign)))
	}
	return float32(sign * math.Ldexp(1+fraction, exponent-15))
}

// undo takes the prediction from a row of `of` bands.
func (s *sampler) undo(row []byte, of int) {
	switch order := s.f.order; {
	case s.p.Predictor == 2 && s.p.Bits == 8:
		for i := of; i < len(row); i++ {
			row[i] += row[i-of]
		}
	case s.p.Predictor == 2 && s.p.Bits == 16:
		for i := 2 * of; i+1 < len(row); i += 2 {
			order.PutUint16(row[i:], order.Uint16(row[i:])+order.Uint16(row[i-2*of:]))
		}
	case s.p.Predictor == 2 && s.p.Bits == 32:
		for i := 4 * of; i+3 < len(row); i += 4 {
			order.PutUint32(row[i:], order.Uint32(row[i:])+order.Uint32(row[i-4*of:]))
		}
	case s.p.Predictor == 2 && s.p.Bits == 64:
		for i := 8 * of; i+7 < len(row); i += 8 {
			order.PutUint64(row[i:], order.Uint64(row[i:])+order.Uint64(row[i-8*of:]))
		}
	case s.p.Predictor == 3:
		undoFloats(row, of, s.p.Bits/8, order)
	}
}

// undoFloats takes the floating point prediction of TIFF's technical note 3 from a row: its
// bytes are differences, by significance.
func undoFloats(row []byte, of, size int, order binary.ByteOrder) {
	for i := of; i < len(row); i++ {
		row[i] += row[i-of]
	}
	planes := append([]byte{}, row...)
	n := len(row) / max(size, 1)
	for i := range n {
		for k := range size {
			to := size*i + k
			if order == binary.LittleEndian {
				to = size*i + size - 1 - k
			}
			row[to] = planes[k*n+i]
		}
	}
}

// packBits decompresses TIFF's run lengths.
type packBits struct {
	r       io.Reader
	literal int  // bytes to copy
	repeat  int  // times to repeat b
	b       byte // the byte that is repeated
}

func (p *packBits) Read(out []byte) (n int, err error) {
	var one [1]byte
	for n < len(out) {
		switch {
		case p.repeat > 0:
			out[n] = p.b
			n, p.repeat = n+1, p.repeat-1
			continue
		case p.literal > 0:
			m, err := p.r.Read(out[n : n+min(p.literal, len(out)-n)])
			n, p.literal = n+m, p.literal-m
			if err != nil {
				return n, err
			}
			continue
		}
		if _, err := io.ReadFull(p.r, one[:]); err != nil {
			return n, io.EOF
		}
		switch c := int8(one[0]); {
		case c >= 0:
			p.literal = int(c) + 1
		case c != -128:
			if _, err := io.ReadFull(p.r, one[:]); err != nil {
				return n, io.ErrUnexpectedEOF
			}
			p.repeat, p.b = 1-int(c), one[0]
		}
	}
	return n, nil
}
