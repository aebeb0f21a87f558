package bags

import (
	"context"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zip"
	"golang.org/x/sync/errgroup"
)

// unzip checks the whole directory before a byte is written, and then unpacks
// members on all cores.
func unzip(ctx context.Context, src *source, size int64, s *sink) error {
	z, entries, err := openZip(src, size, s)
	if err != nil {
		return err
	}
	files, err := planZip(z.File, entries, s)
	if err != nil {
		return err
	}
	if s.onlyNames() {
		s.peekZip(files)
		return nil
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
		m, dir, err := s.admitZip(f, entries[i])
		if err == nil && !dir {
			if total += m.size; total < 0 {
				return nil, s.broken(m.name, RuleSize, "the archive gives an impossible size", nil)
			}
			if rule, detail := s.limits.overBytes(total, s.input); rule != "" {
				return nil, s.broken(m.name, rule, detail, nil)
			}
			files = append(files, zipFile{m, f})
		}
		if err := s.pass(err); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (s *sink) admitZip(f *zip.File, e zipEntry) (m member, dir bool, err error) {
	mode, dir, err := s.zipMember(f, e)
	if err != nil {
		return m, dir, err
	}
	m = member{name: e.text, mode: mode, at: saneTime(f.Modified), size: int64(f.UncompressedSize64)}
	if m.path, err = s.admit(m.name, dir); err != nil {
		return m, dir, err
	}
	if m.size < 0 {
		return m, dir, s.broken(m.name, RuleSize, "the archive gives an impossible size", nil)
	}
	s.saw(m, dir)
	if dir {
		return m, dir, s.addFolder(m.path, m.at)
	}
	if s.onlyNames() {
		s.done.Bytes += m.size
	}
	rule, detail := s.limits.overFile(m.size)
	if rule != "" {
		return m, dir, s.broken(m.name, rule, detail, nil)
	}
	return m, dir, nil
}

func (s *sink) zipMember(f *zip.File, e zipEntry) (mode fs.FileMode, dir bool, err error) {
	if f.Name != e.name || f.Method != e.method {
		return 0, false, s.broken(e.text, RuleHeaders, "the directory reads in two ways", nil)
	}
	if e.flags&encryptFlags != 0 || e.method == methodAES {
		return 0, false, s.broken(e.text, RuleEncrypted, "the member is encrypted ("+encryption(e)+")", nil)
	}
	if !slices.Contains([]uint16{methodStore, methodDefl, methodBzip2, methodZstd, methodXz}, f.Method) {
		return 0, false, s.broken(e.text, RuleMethod, "compressed by "+methodName(f.Method)+", which is not supported", nil)
	}
	mode = f.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		return 0, false, s.broken(e.text, RuleSymlink, refusedLink(symbolicLinks, ""), nil)
	case mode&(fs.ModeType&^fs.ModeDir) != 0:
		return 0, false, s.broken(e.text, RuleSpecial, "devices and FIFOs are not taken", nil)
	}
	dir = mode.IsDir() || strings.HasSuffix(e.text, "/")
	if dir && f.UncompressedSize64 > 0 {
		return 0, false, s.broken(e.text, RuleConflict, "a folder that holds data", nil)
	}
	return mode, dir, nil
}

func encryption(e zipEntry) string {
	switch {
	case e.method == methodAES:
		return "AES"
	case e.flags&flagMasked != 0:
		return "with an encrypted directory"
	case e.flags&flagStrong != 0:
		return "PKWARE strong encryption, " + methodName(e.method)
	}
	return "PKWARE, " + methodName(e.method)
}

func methodName(m uint16) string {
	names := map[uint16]string{
		0: "stored", 1: "shrink", 2: "reduce", 3: "reduce", 4: "reduce", 5: "reduce", 6: "implode", 8: "deflate", 9: "deflate64",
		10: "PKWARE DCL", 12: "bzip2", 14: "LZMA", 16: "CMPSC", 18: "TERSE", 19: "LZ77", 92: "copy", 93: "zstd", 94: "MP3", 95: "xz",
		96: "JPEG", 97: "WavPack", 98: "PPMd", 99: "AES",
	}
	if n := names[m]; n != "" {
		return fmt.Sprintf("method %d (%s)", m, n)
	}
	return fmt.Sprintf("method %d", m)
}

// within fits a compression into the zip library.
func within(open func(io.Reader, int64) (io.ReadCloser, error), memory int64) zip.Decompressor {
	return func(r io.Reader) io.ReadCloser {
		z, err := open(r, memory)
		if err != nil {
			return io.NopCloser(failing{err})
		}
		return z
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// writeAll unpacks on s.workers goroutines. Each takes the next member, so a
// large one holds up nothing but itself.
func (s *sink) writeAll(ctx context.Context, files []zipFile) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(s.workers, len(files)) {
		g.Go(func() error {
			var pl *placer
			if s.root != nil {
				pl = &placer{root: s.root}
				defer pl.close()
			}
			for {
				i := int(next.Add(1)) - 1
				if i >= len(files) {
					return nil
				}
				if err := s.pass(s.writeZip(ctx, pl, files[i])); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

func (s *sink) writeZip(ctx context.Context, pl *placer, f zipFile) error {
	r, err := f.file.Open()
	if err != nil {
		rule, detail := damage(err)
		return s.broken(f.name, rule, detail, err)
	}
	defer r.Close()
	if f.file.CRC32 != 0 {
		return s.write(ctx, pl, f.member, r)
	}
	// The library takes a check sum of zero for "not given"; it is the sum of an
	// empty file, and of nearly nothing else.
	sum := &crcReader{r: r, h: crc32.NewIEEE()}
	if err := s.write(ctx, pl, f.member, sum); err != nil {
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
