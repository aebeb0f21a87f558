package zips

import (
	"io"

	"bagpipe/bags/archive/internal/compress"
	"bagpipe/bags/archive/internal/notes"
	"bagpipe/bags/files"

	"github.com/klauspost/compress/zip"
	"github.com/klauspost/compress/zstd"
)

// Options bound the reading of a zip.
type Options struct {
	Files  int64  // members at most
	Memory int64  // bytes a decoder may hold
	Names  string // one of CodePages, or "": guessed
}

// Open checks the directory by the rules of read_directory.go, and gives the library's reader
// of the same members, each with its name in UTF-8.
func Open(src io.ReaderAt, size int64, o Options, n *notes.Notes) (*zip.Reader, []Entry, error) {
	entries, end, err := readZipDirectory(src, size, o.Files, n)
	if err != nil {
		return nil, nil, err
	}
	whole := &zipWithoutComment{r: src, size: end.record + eocdLen}
	z, err := zip.NewReader(whole, whole.size)
	if err != nil {
		rule, detail := compress.Damage(err)
		return nil, nil, n.Broken("", rule, detail, err)
	}
	z.RegisterDecompressor(zip.Deflate, compress.Inflate)
	z.RegisterDecompressor(methodZstd, zstd.ZipDecompressor(zstd.WithDecoderMaxWindow(compress.MaxWindow), zstd.WithDecoderLowmem(true)))
	z.RegisterDecompressor(methodBzip2, within(compress.OpenBzip2, o.Memory))
	z.RegisterDecompressor(methodXz, within(compress.OpenXz, o.Memory))
	if len(z.File) != len(entries) {
		return nil, nil, n.Broken("", files.RuleHeaders, "the directory reads in two ways", nil)
	}
	return z, entries, decodeNames(entries, o.Names, n)
}

// zipWithoutComment ends behind the end record, and says there that no comment
// follows: the library takes an end record's mark within a comment for the record.
type zipWithoutComment struct {
	r    io.ReaderAt
	size int64
}

func (z *zipWithoutComment) ReadAt(p []byte, off int64) (int, error) {
	const lengthBytes = 2
	n, err := io.NewSectionReader(z.r, 0, z.size).ReadAt(p, off)
	for at := max(off, z.size-lengthBytes); at < off+int64(n); at++ {
		p[at-off] = 0
	}
	return n, err
}
