package bags

import (
	"io"

	"github.com/klauspost/compress/zip"
	"github.com/klauspost/compress/zstd"
)

// zipOptions bound the reading of a directory.
type zipOptions struct {
	files  int64  // members at most
	memory int64  // bytes a decoder may hold
	names  string // one of CodePages, or "": guessed
}

// openZip reads the directory by the rules of zipdir.go, and gives the library's
// reader of the same members, each with its name in UTF-8.
func openZip(src io.ReaderAt, size int64, o zipOptions, n *notes) (*zip.Reader, []zipEntry, error) {
	entries, end, err := readZipDirectory(src, size, o.files, n)
	if err != nil {
		return nil, nil, err
	}
	whole := &zipWithoutComment{r: src, size: end.record + eocdLen}
	z, err := zip.NewReader(whole, whole.size)
	if err != nil {
		rule, detail := damage(err)
		return nil, nil, n.broken("", rule, detail, err)
	}
	z.RegisterDecompressor(zip.Deflate, inflate)
	z.RegisterDecompressor(methodZstd, zstd.ZipDecompressor(zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true)))
	z.RegisterDecompressor(methodBzip2, within(openBzip2, o.memory))
	z.RegisterDecompressor(methodXz, within(openXz, o.memory))
	if len(z.File) != len(entries) {
		return nil, nil, n.broken("", RuleHeaders, "the directory reads in two ways", nil)
	}
	return z, entries, decodeNames(entries, o.names, n)
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
