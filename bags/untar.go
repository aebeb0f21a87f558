package bags

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func untar(ctx context.Context, src *source, s *sink) error {
	return untarFrom(ctx, src, s)
}

func untarGzip(ctx context.Context, src *source, s *sink) error {
	z, err := gzip.NewReader(src)
	if err != nil {
		return s.broken("", RuleDamaged, "no gzip header", err)
	}
	defer z.Close()
	return untarFrom(ctx, z, s)
}

func untarZstd(ctx context.Context, src *source, s *sink) error {
	z, err := newZstd(src)
	if err != nil {
		return s.broken("", RuleDamaged, "no zstd header", err)
	}
	defer z.Close()
	return untarFrom(ctx, z, s)
}

// untarFrom unpacks the tar that r delivers and reads r to its end, so that the
// check sums of the compression around it are verified.
func untarFrom(ctx context.Context, r io.Reader, s *sink) error {
	blocks := &countReader{r: r}
	t := tar.NewReader(blocks)
	last := ""
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := roundUp(blocks.read)
		h, err := t.Next()
		if errors.Is(err, io.EOF) && blocks.read <= next {
			// Some writers leave the mark out, so this alone proves nothing. Inside
			// gzip or zstd a cut is found by their check sums.
			s.warn(last, "the archive stops after this member, without an end mark: it may have been cut there")
		}
		if errors.Is(err, io.EOF) {
			return s.tarEnd(ctx, blocks)
		}
		if err != nil {
			return s.badStream(last, err)
		}
		if err := s.tarMember(ctx, h, t); err != nil {
			return err
		}
		last = h.Name
	}
}

// badStream reports an error between members; last is the member before it.
func (s *sink) badStream(last string, err error) error {
	rule, detail := damage(err)
	switch {
	case errors.Is(err, tar.ErrHeader):
		rule, detail = RuleDamaged, "no valid tar header"
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, zstd.ErrMagicMismatch):
		rule, detail = RuleTrailing, "data that is no part of the archive follows"
	}
	if last != "" {
		detail += ", after this member"
	}
	return s.broken(last, rule, detail, err)
}

func (s *sink) tarMember(ctx context.Context, h *tar.Header, r io.Reader) error {
	if err := s.tarType(h); err != nil || h.Typeflag == tar.TypeXGlobalHeader {
		return err
	}
	dir := h.Typeflag == tar.TypeDir
	p, err := s.admit(h.Name, dir)
	if err != nil {
		return err
	}
	at := saneTime(h.ModTime)
	if dir {
		return s.addFolder(p, at)
	}
	if rule, detail := s.limits.overFile(h.Size); rule != "" {
		return s.broken(h.Name, rule, detail, nil)
	}
	if err := s.mkdir(path.Dir(p)); err != nil {
		return err
	}
	return s.write(ctx, member{name: h.Name, path: p, mode: h.FileInfo().Mode(), at: at, size: h.Size}, r)
}

func (s *sink) tarType(h *tar.Header) error {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeCont, tar.TypeGNUSparse, tar.TypeXGlobalHeader:
		return nil
	case tar.TypeSymlink:
		return s.broken(h.Name, RuleSymlink, "symbolic links are not taken", nil)
	case tar.TypeLink:
		return s.broken(h.Name, RuleHardLink, "hard links are not taken", nil)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return s.broken(h.Name, RuleSpecial, "devices and FIFOs are not taken", nil)
	}
	return s.broken(h.Name, RuleSpecial, "neither a file nor a folder (type "+string(rune(h.Typeflag))+")", nil)
}

// tarEnd reads what follows the end mark: zeros up to the record's end, or
// something that is no part of the archive.
func (s *sink) tarEnd(ctx context.Context, r io.Reader) error {
	buf := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buf)
	var total int64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(*buf)
		if !isZero((*buf)[:n]) {
			return s.broken("", RuleTrailing, "data follows the end of the archive", nil)
		}
		total += int64(n)
		if rule, detail := s.limits.overBytes(total, s.input); rule != "" {
			return s.broken("", rule, detail, nil)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.badStream("", err)
		}
	}
}

// countReader counts what was read. The tar reader says EOF both at an end mark
// and where a file simply stops; only after an end mark has it read a block
// beyond the last member.
type countReader struct {
	r    io.Reader
	read int64
}

func (c *countReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.read += int64(n)
	return n, err
}

func roundUp(n int64) int64 { return (n + tarBlock - 1) / tarBlock * tarBlock }

func isZero(p []byte) bool {
	for _, c := range p {
		if c != 0 {
			return false
		}
	}
	return true
}

// saneTime drops times that no file system keeps.
func saneTime(t time.Time) time.Time {
	if y := t.Year(); y < 1902 || y > 2400 || t.Unix() == 0 {
		return time.Time{}
	}
	return t
}
