package bags

import (
	"context"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"
)

// unzip checks the whole directory before a byte is written, and then unpacks
// members on all cores.
func unzip(ctx context.Context, src *source, size int64, s *sink) error {
	entries, err := readZipDirectory(src, size, s)
	if err != nil {
		return err
	}
	z, err := zip.NewReader(src, size)
	if err != nil {
		rule, detail := damage(err)
		return s.broken("", rule, detail, err)
	}
	z.RegisterDecompressor(zip.Deflate, inflate)
	z.RegisterDecompressor(methodZstd, zstd.ZipDecompressor(zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true)))
	if len(z.File) != len(entries) {
		return s.broken("", RuleHeaders, "the directory reads in two ways", nil)
	}
	files, err := planZip(z.File, entries, s)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := s.mkdir(path.Dir(f.path)); err != nil {
			return err
		}
	}
	s.done.TotalFiles = int64(len(files))
	for _, f := range files {
		s.done.TotalBytes += f.size
	}
	return s.writeAll(ctx, files)
}

type zipFile struct {
	member
	file *zip.File
}

// planZip admits every member and makes the folders that stand for themselves.
func planZip(all []*zip.File, entries []zipEntry, s *sink) ([]zipFile, error) {
	var files []zipFile
	var total int64
	for i, f := range all {
		mode, dir, err := s.zipMember(f, entries[i])
		if err != nil {
			return nil, err
		}
		p, err := s.admit(f.Name, dir)
		if err != nil {
			return nil, err
		}
		if dir {
			if err := s.addFolder(p, saneTime(f.Modified)); err != nil {
				return nil, err
			}
			continue
		}
		size := int64(f.UncompressedSize64)
		if total += size; size < 0 || total < 0 {
			return nil, s.broken(f.Name, RuleSize, "the archive gives an impossible size", nil)
		}
		if rule, detail := s.limits.overFile(size); rule != "" {
			return nil, s.broken(f.Name, rule, detail, nil)
		}
		if rule, detail := s.limits.overBytes(total, s.input); rule != "" {
			return nil, s.broken(f.Name, rule, detail, nil)
		}
		files = append(files, zipFile{member{f.Name, p, mode, saneTime(f.Modified), size}, f})
	}
	return files, nil
}

func (s *sink) zipMember(f *zip.File, e zipEntry) (mode fs.FileMode, dir bool, err error) {
	if f.Name != e.name || f.Method != e.method {
		return 0, false, s.broken(e.name, RuleHeaders, "the directory reads in two ways", nil)
	}
	if e.flags&encryptFlags != 0 {
		return 0, false, s.broken(f.Name, RuleEncrypted, "the member is encrypted", nil)
	}
	if f.Method != methodStore && f.Method != methodDefl && f.Method != methodZstd {
		return 0, false, s.broken(f.Name, RuleMethod, fmt.Sprintf("compressed by %s", methodName(f.Method)), nil)
	}
	mode = f.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		return 0, false, s.broken(f.Name, RuleSymlink, "symbolic links are not taken", nil)
	case mode&(fs.ModeType&^fs.ModeDir) != 0:
		return 0, false, s.broken(f.Name, RuleSpecial, "devices and FIFOs are not taken", nil)
	}
	dir = mode.IsDir() || strings.HasSuffix(f.Name, "/")
	if dir && f.UncompressedSize64 > 0 {
		return 0, false, s.broken(f.Name, RuleConflict, "a folder that holds data", nil)
	}
	return mode, dir, nil
}

func methodName(m uint16) string {
	names := map[uint16]string{
		1: "shrink", 2: "reduce", 3: "reduce", 4: "reduce", 5: "reduce", 6: "implode", 9: "deflate64", 12: "bzip2",
		14: "LZMA", 95: "xz", 96: "JPEG", 97: "WavPack", 98: "PPMd", 99: "AES",
	}
	if n := names[m]; n != "" {
		return fmt.Sprintf("method %d (%s)", m, n)
	}
	return fmt.Sprintf("method %d", m)
}

// writeAll unpacks on s.workers goroutines. Each takes the next member, so a
// large one holds up nothing but itself.
func (s *sink) writeAll(ctx context.Context, files []zipFile) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(s.workers, len(files)) {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(files) {
					return nil
				}
				if err := s.writeZip(ctx, files[i]); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

func (s *sink) writeZip(ctx context.Context, f zipFile) error {
	r, err := f.file.Open()
	if err != nil {
		rule, detail := damage(err)
		return s.broken(f.name, rule, detail, err)
	}
	defer r.Close()
	if f.file.CRC32 != 0 {
		return s.write(ctx, f.member, r)
	}
	// The library takes a check sum of zero for "not given"; it is the sum of an
	// empty file, and of nearly nothing else.
	sum := &crcReader{r: r, h: crc32.NewIEEE()}
	if err := s.write(ctx, f.member, sum); err != nil {
		return err
	}
	if sum.h.Sum32() != 0 && f.file.CRC32 == 0 {
		return s.broken(f.name, RuleChecksum, "the data does not match its check sum", nil)
	}
	return nil
}

type crcReader struct {
	r io.Reader
	h hash.Hash32
}

func (c *crcReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.h.Write(p[:n])
	return n, err
}
