package compress

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/therootcompany/xz"
)

// MaxWindow bounds the window of a zstd stream: 128 MiB is what "zstd --long=27" writes
// and every zstd reads without being told.
const MaxWindow = 128 << 20

// A Compression may stand around a tar.
type Compression struct {
	Name string // the suffix of its files
	Is   func(head []byte) bool
	Open func(r io.Reader, memory int64) (io.ReadCloser, error)
}

// All lists the compressions; their first bytes exclude one another.
func All() []Compression {
	return []Compression{
		{"gz", hasPrefix("\x1f\x8b"), openGzip},
		{"zst", isZstd, openZstd},
		{"xz", hasPrefix("\xfd7zXZ\x00"), OpenXz},
		{"bz2", isBzip2, OpenBzip2},
		{"lz4", isLz4, openLz4},
	}
}

// Of gives the compression whose files have this suffix.
func Of(name string) (Compression, bool) {
	for _, c := range All() {
		if c.Name == name {
			return c, true
		}
	}
	return Compression{}, false
}

func hasPrefix(magic string) func([]byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
}

func isZstd(b []byte) bool {
	rest, skipped := afterSkippable(b)
	return hasPrefix("\x28\xb5\x2f\xfd")(rest) || skipped && !isLz4(rest)
}

// afterSkippable passes over the frames that zstd and lz4 have in common, which hold
// nothing of theirs.
func afterSkippable(b []byte) (rest []byte, skipped bool) {
	const head = 8
	for len(b) >= head && binary.LittleEndian.Uint32(b)&0xfffffff0 == 0x184d2a50 {
		skipped = true
		b = b[min(int64(len(b)), head+int64(binary.LittleEndian.Uint32(b[4:]))):]
	}
	return b, skipped
}

// isBzip2 wants the block's or the end's mark as well: "BZh" alone is a text.
func isBzip2(b []byte) bool {
	if len(b) < 10 || string(b[:3]) != "BZh" || b[3] < '1' || b[3] > '9' {
		return false
	}
	mark := string(b[4:10])
	return mark == "\x31\x41\x59\x26\x53\x59" || mark == "\x17\x72\x45\x38\x50\x90"
}

func isLz4(b []byte) bool {
	b, _ = afterSkippable(b)
	return hasPrefix("\x04\x22\x4d\x18")(b) || hasPrefix("\x02\x21\x4c\x18")(b)
}

func openGzip(r io.Reader, _ int64) (io.ReadCloser, error) {
	return newGunzip(r)
}

func openZstd(r io.Reader, memory int64) (io.ReadCloser, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(uint64(min(MaxWindow, memory))), zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}

// OpenXz decompresses xz within so many bytes of memory.
func OpenXz(r io.Reader, memory int64) (io.ReadCloser, error) {
	z, err := xz.NewReader(r, uint32(min(memory, math.MaxUint32)))
	return io.NopCloser(z), err
}

const inBuffer = 64 << 10 // of the libraries' readers

// OpenBzip2 decompresses bzip2.
func OpenBzip2(r io.Reader, _ int64) (io.ReadCloser, error) {
	return io.NopCloser(bzip2.NewReader(bufio.NewReaderSize(r, inBuffer))), nil
}

func openLz4(r io.Reader, _ int64) (io.ReadCloser, error) {
	return io.NopCloser(lz4.NewReader(bufio.NewReaderSize(r, inBuffer))), nil
}
