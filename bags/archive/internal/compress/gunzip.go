package compress

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"bagpipe/bags/archive/internal/volume"
	"bagpipe/layout/deflate"

	"github.com/klauspost/compress/gzip"
)

// gunzip reads gzip members one after the other (RFC 1952), each to its check sum.
type gunzip struct {
	d    *deflate.Reader
	sum  uint32
	size uint32
	err  error
}

func newGunzip(r io.Reader) (*gunzip, error) {
	g := &gunzip{d: deflate.NewReader()}
	g.d.Reset(r)
	return g, g.header()
}

// Close has nothing to do.
func (g *gunzip) Close() error { return nil }

// Read gives the bytes of all members, and io.EOF behind the last.
func (g *gunzip) Read(p []byte) (int, error) {
	for g.err == nil {
		n, err := g.d.Read(p)
		g.sum = crc32.Update(g.sum, crc32.IEEETable, p[:n])
		g.size += uint32(n)
		switch {
		case errors.Is(err, io.EOF):
			g.err = g.trailer()
			if g.err == nil {
				g.err = g.next()
			}
		case err != nil:
			g.err = err
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, g.err
}

// trailer compares the member's sum and size.
func (g *gunzip) trailer() error {
	var b [8]byte
	if err := g.d.Plain(b[:]); err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(b[:]) != g.sum || binary.LittleEndian.Uint32(b[4:]) != g.size {
		return gzip.ErrChecksum
	}
	return nil
}

// The header's flags.
const (
	gzipHasSum     = 1 << 1
	gzipHasExtra   = 1 << 2
	gzipHasName    = 1 << 3
	gzipHasComment = 1 << 4
	gzipReserved   = 7 << 5
)

// next begins the member after another; io.EOF where there is none. Zeros up to the
// end are what a tape or disc was filled up with.
func (g *gunzip) next() error {
	if g.d.Ended() {
		return io.EOF
	}
	if g.d.Rest()[0] != 0 {
		return g.header()
	}
	for !g.d.Ended() {
		rest := g.d.Rest()
		if !volume.IsZero(rest) {
			return gzip.ErrHeader
		}
		if err := g.d.Plain(rest); err != nil { // past the zeros
			return err
		}
	}
	return io.EOF
}

// header begins a member; io.EOF where there is none.
func (g *gunzip) header() error {
	var h [10]byte
	if g.d.Ended() {
		return io.EOF
	}
	if err := g.d.Plain(h[:2]); err != nil || h[0] != 0x1f || h[1] != 0x8b {
		return gzip.ErrHeader
	}
	if err := g.d.Plain(h[2:]); err != nil {
		return err
	}
	flags := h[3]
	if h[2] != 8 || flags&gzipReserved != 0 {
		return gzip.ErrHeader
	}
	sum := crc32.ChecksumIEEE(h[:])
	if flags&gzipHasExtra != 0 {
		var size [2]byte
		if err := g.d.Plain(size[:]); err != nil {
			return err
		}
		extra := make([]byte, binary.LittleEndian.Uint16(size[:]))
		if err := g.d.Plain(extra); err != nil {
			return err
		}
		sum = crc32.Update(crc32.Update(sum, crc32.IEEETable, size[:]), crc32.IEEETable, extra)
	}
	for _, text := range []byte{gzipHasName, gzipHasComment} {
		if flags&text == 0 {
			continue
		}
		for c := [1]byte{1}; c[0] != 0; {
			if err := g.d.Plain(c[:]); err != nil {
				return err
			}
			sum = crc32.Update(sum, crc32.IEEETable, c[:])
		}
	}
	if flags&gzipHasSum != 0 {
		var s [2]byte
		if err := g.d.Plain(s[:]); err != nil {
			return err
		}
		if binary.LittleEndian.Uint16(s[:]) != uint16(sum) {
			return gzip.ErrHeader
		}
	}
	g.sum, g.size = 0, 0
	g.d.Next()
	return nil
}
