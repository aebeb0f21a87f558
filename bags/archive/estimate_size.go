package archive

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// guessedRatio stands for what the headers of some formats do not say: bzip2, and
// streams written without their size.
const guessedRatio = 4

// Expanded tells what an archive will take once it is unpacked, from its headers
// alone: exact for zip, 7z, rar and tar; for a compressed tar what its stream says of
// itself, else, of a small one, what is in it, and of others four times its size. It is
// an estimate to plan by: headers can lie, and Extract believes none of them. A file that
// is no archive, or a damaged one, has its own size.
func Expanded(ctx context.Context, path string, l Limits) (int64, error) {
	format, err := Sniff(path)
	if err != nil {
		return 0, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return 0, fmt.Errorf("measure %s: %w", path, err)
	}
	packed := info.Size()
	var size int64
	switch format {
	case None, Tar:
		return packed, nil
	case Zip, SevenZip, Rar:
		in, err := Inspect(ctx, path, InspectOptions{Limits: l})
		if err != nil {
			return 0, err
		}
		size = in.Bytes
	default:
		var told bool
		if size, told, err = streamSize(path, packed, format); err != nil {
			return 0, err
		}
		switch {
		case told:
		case packed > smallStream:
			size = packed * guessedRatio
		default: // many small ones could hold much
			in, err := Inspect(ctx, path, InspectOptions{Limits: l})
			if err != nil {
				return 0, err
			}
			if size = in.Bytes; len(in.Problems) > 0 { // it may fill the disk before it turns out to be damaged
				size = l.MostExpanded(packed)
			}
		}
	}
	return max(size, packed), nil
}

// smallStream is a length up to which a stream is read to measure it.
const smallStream = 1 << 20

// streamSize asks a compressed stream for the length of what is in it; told is false where
// it does not say.
func streamSize(path string, packed int64, format Format) (size int64, told bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, false, fmt.Errorf("measure %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	switch format {
	case TarGzip:
		size, err = gzipSize(f, packed)
		return size, true, err
	case TarXz:
		size, told = xzSize(f, packed)
		return size, told, nil
	case TarZstd:
		var h zstd.Header
		head := make([]byte, zstd.HeaderMaxSize)
		n, _ := io.ReadFull(f, head)
		if h.Decode(head[:n]) == nil && h.HasFCS {
			return int64(min(h.FrameContentSize, 1<<62)), true, nil
		}
	}
	return 0, false, nil
}

// gzipSize reads the length a gzip file ends with, which is given modulo 4 GiB.
func gzipSize(r io.ReaderAt, packed int64) (int64, error) {
	var b [4]byte
	if _, err := r.ReadAt(b[:], packed-4); err != nil {
		return 0, fmt.Errorf("measure a gzip file: %w", err)
	}
	n := int64(binary.LittleEndian.Uint32(b[:]))
	for n < packed {
		n += 1 << 32
	}
	return n, nil
}

// maxXzIndex bounds the index that is read: of 100,000 blocks.
const maxXzIndex = 1 << 20

// xzSize adds up the index of an xz file's last stream (The .xz File Format, 4).
func xzSize(r io.ReaderAt, packed int64) (total int64, ok bool) {
	const footer = 12
	var b [footer]byte
	if _, err := r.ReadAt(b[:], packed-footer); err != nil || !bytes.Equal(b[10:], []byte("YZ")) {
		return 0, false
	}
	length := (int64(binary.LittleEndian.Uint32(b[4:8])) + 1) * 4
	if length > maxXzIndex || length > packed-footer {
		return 0, false
	}
	in := bufio.NewReader(io.NewSectionReader(r, packed-footer-length, length))
	if indicator, err := in.ReadByte(); err != nil || indicator != 0 {
		return 0, false
	}
	records, err := binary.ReadUvarint(in)
	if err != nil || records > maxXzIndex {
		return 0, false
	}
	for range records {
		_, err := binary.ReadUvarint(in) // packed
		size, err2 := binary.ReadUvarint(in)
		if err != nil || err2 != nil || size > 1<<50 {
			return 0, false
		}
		total += int64(size)
	}
	return total, true
}
