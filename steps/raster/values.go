package raster

import (
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/image/tiff/lzw"
)

// stream decompresses a block. What is not compressed can be skipped without reading.
func (s *sampler) stream(r *io.SectionReader) (io.Reader, error) {
	if s.p.fillOrder == 2 {
		return nil, fmt.Errorf("bits in the order from the right are not read")
	}
	switch s.p.Compression {
	case 1:
		return r, nil
	case 5:
		return lzw.NewReader(r, lzw.MSB, 8), nil
	case 8, 32946:
		return zlib.NewReader(r)
	case 32773:
		return &packBits{r: r}, nil
	case 50000:
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("compression %s is not read", s.p.CompressionName())
}

// valueOf gives what reads the n-th value of a row.
func (s *sampler) valueOf() (func(row []byte, n int64) float32, error) {
	order, signed := s.f.order, s.p.Sample == 2
	switch kind := s.p.Sample; {
	case kind == 3 && s.p.Bits == 32:
		return func(b []byte, n int64) float32 { return math.Float32frombits(order.Uint32(b[4*n:])) }, nil
	case kind == 3 && s.p.Bits == 64:
		return func(b []byte, n int64) float32 { return float32(math.Float64frombits(order.Uint64(b[8*n:]))) }, nil
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
	case bits.OnesCount(uint(s.p.Bits)) == 1 && s.p.Bits < 8:
		size := int64(s.p.Bits)
		return func(b []byte, n int64) float32 {
			bit := n * size
			return float32(b[bit/8] >> (8 - size - bit%8) & (1<<size - 1))
		}, nil
	}
	return nil, fmt.Errorf("values of type %s are not read", s.p.Type())
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
	r       *io.SectionReader
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
