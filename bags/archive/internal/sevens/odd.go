package sevens

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"

	"bagpipe/bags/archive/internal/volume"

	"github.com/bodgit/sevenzip"
	"github.com/klauspost/compress/flate"
)

// The library reads two sound kinds of archives wrongly: it takes the last byte of a deflated
// stream that a BCJ2 filter reads for the stream's end, and it does not know the properties
// that may stand at the beginning of a header. Both are mended on their way to it.

// wholeDeflate gives the library streams whose end comes after their last byte.
func wholeDeflate() {
	sevenzip.RegisterDecompressor([]byte("\x04\x01\x08"), func(_ []byte, _ uint64, from []io.ReadCloser) (io.ReadCloser, error) {
		if len(from) != 1 {
			return nil, methodError{"", "deflate of several streams"}
		}
		return deflated{bufio.NewReader(flate.NewReader(bufio.NewReader(from[0]))), from[0]}, nil
	})
}

// deflated is an io.ByteReader, whose bytes come without an error.
type deflated struct {
	*bufio.Reader
	io.Closer
}

// Numbers of properties in headers.
const (
	idEnd               = 0x00
	idHeader            = 0x01
	idArchiveProperties = 0x02

	maxPlainHeader = 64 << 20
)

// withoutProperties is the archive without the properties at the beginning of its header,
// which say nothing of its members. What is not as it should be is the library's to judge.
func withoutProperties(src *volume.Joined, start []byte) (io.ReaderAt, error) {
	le := binary.LittleEndian
	offset, size := le.Uint64(start[12:]), le.Uint64(start[20:])
	if size < 4 || size > maxPlainHeader || offset > uint64(src.Total()) {
		return src, nil
	}
	at := int64(offset) + StartLen
	head := make([]byte, 2)
	if _, err := src.ReadAt(head, at); err != nil || !bytes.Equal(head, []byte{idHeader, idArchiveProperties}) {
		return src, nil
	}
	old := make([]byte, size)
	if _, err := src.ReadAt(old, at); err != nil {
		return nil, err
	}
	rest, ok := afterProperties(old[2:])
	if !ok || crc32.ChecksumIEEE(old) != le.Uint32(start[28:]) {
		return src, nil
	}
	header := append([]byte{idHeader}, rest...)
	first := bytes.Clone(start)
	le.PutUint64(first[20:], uint64(len(header)))
	le.PutUint32(first[28:], crc32.ChecksumIEEE(header))
	le.PutUint32(first[8:], crc32.ChecksumIEEE(first[12:]))
	return overlaid{src, map[int64][]byte{0: first, at: header}}, nil
}

// afterProperties passes over pairs of a number and so many bytes.
func afterProperties(b []byte) (rest []byte, ok bool) {
	for len(b) > 0 {
		if b[0] == idEnd {
			return b[1:], true
		}
		n, used := number(b[1:])
		if used == 0 || n > uint64(len(b)-1-used) {
			return nil, false
		}
		b = b[1+used+int(n):]
	}
	return nil, false
}

// number reads a number of 1 to 9 bytes: so many ones at the beginning of the first, so many
// bytes follow.
func number(b []byte) (n uint64, used int) {
	if len(b) == 0 {
		return 0, 0
	}
	mask := byte(0x80)
	for i := range 8 {
		if b[0]&mask == 0 {
			return n | uint64(b[0]&(mask-1))<<(8*i), i + 1
		}
		if i+1 >= len(b) {
			return 0, 0
		}
		n |= uint64(b[i+1]) << (8 * i)
		mask >>= 1
	}
	return n, 9
}

// overlaid reads some places of an archive otherwise.
type overlaid struct {
	io.ReaderAt
	at map[int64][]byte
}

func (o overlaid) ReadAt(p []byte, off int64) (n int, err error) {
	n, err = o.ReaderAt.ReadAt(p, off)
	for at, data := range o.at {
		from, to := max(at, off), min(at+int64(len(data)), off+int64(n))
		if from < to {
			copy(p[from-off:to-off], data[from-at:to-at])
		}
	}
	return n, err
}
