package bags

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/therootcompany/xz"
)

// compression is what may stand around a tar.
type compression struct {
	format Format
	is     func(head []byte) bool
	open   func(r io.Reader, memory int64) (io.ReadCloser, error)
}

// compressions are tried in this order; their first bytes exclude one another.
func compressions() []compression {
	return []compression{
		{TarGzip, hasPrefix("\x1f\x8b"), openGzip},
		{TarZstd, isZstd, openZstd},
		{TarXz, hasPrefix("\xfd7zXZ\x00"), openXz},
		{TarBzip2, isBzip2, openBzip2},
		{TarLz4, isLz4, openLz4},
	}
}

func compressionOf(f Format) (compression, bool) {
	for _, c := range compressions() {
		if c.format == f {
			return c, true
		}
	}
	return compression{}, false
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
	z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(uint64(min(maxWindow, memory))), zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}

func openXz(r io.Reader, memory int64) (io.ReadCloser, error) {
	z, err := xz.NewReader(r, uint32(min(memory, math.MaxUint32)))
	return io.NopCloser(z), err
}

const inBuffer = 64 << 10 // of the libraries' readers

func openBzip2(r io.Reader, _ int64) (io.ReadCloser, error) {
	return io.NopCloser(bzip2.NewReader(bufio.NewReaderSize(r, inBuffer))), nil
}

func openLz4(r io.Reader, _ int64) (io.ReadCloser, error) {
	return io.NopCloser(lz4.NewReader(bufio.NewReaderSize(r, inBuffer))), nil
}

const foreignData = "data that is no part of the archive follows"

// damageOfStream names what a compression's reader said.
func damageOfStream(err error) (Rule, string, bool) {
	var broken bzip2.StructuralError
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, zstd.ErrMagicMismatch), errors.Is(err, xz.ErrFormat), errors.Is(err, lz4.ErrInvalidFrame):
		return RuleTrailing, foreignData, true
	case errors.Is(err, xz.ErrBuf):
		return RuleTruncated, "the data ends early", true
	case errors.Is(err, xz.ErrMemlimit):
		return RuleMemory, "decompressing needs more memory than is allowed", true
	case errors.Is(err, xz.ErrOptions), errors.Is(err, xz.ErrUnsupportedCheck):
		return RuleMethod, err.Error(), true
	case errors.Is(err, lz4.ErrInvalidBlockChecksum), errors.Is(err, lz4.ErrInvalidFrameChecksum), errors.Is(err, lz4.ErrInvalidHeaderChecksum):
		return RuleChecksum, "the data does not match its check sum", true
	case errors.As(err, &broken):
		switch string(broken) {
		case "bad magic value in continuation file":
			return RuleTrailing, foreignData, true
		case "file checksum mismatch", "block checksum mismatch":
			return RuleChecksum, "the data does not match its check sum", true
		}
		return RuleDamaged, fmt.Sprintf("the compressed data is damaged: %s", string(broken)), true
	}
	return "", "", false
}
