package compress

import (
	"errors"
	"hash"
	"hash/crc32"
	"io"
)

// ErrSum says that a member's bytes are not those that were packed.
var errSum = errors.New("the data does not match its check sum")

// sumReader compares the CRC-32 of what it reads with want, where the end is met.
type sumReader struct {
	r    io.Reader
	h    hash.Hash32
	want uint32
}

// NewSumReader reads r, whose CRC-32 is to be want.
func NewSumReader(r io.Reader, want uint32) *sumReader { return &sumReader{r, crc32.NewIEEE(), want} }

// Read gives ErrSum in place of io.EOF where the sums differ.
func (c *sumReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.h.Write(p[:n])
	if errors.Is(err, io.EOF) && c.h.Sum32() != c.want {
		return n, errSum
	}
	return n, err
}
