package bags

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"time"
)

// untar unpacks a tar, plain or compressed.
func untar(ctx context.Context, src *source, s *sink) error {
	c, compressed := compressionOf(s.report.Format)
	if !compressed {
		return untarFrom(ctx, src, s)
	}
	z, err := c.open(src, s.limits.Memory)
	if err != nil {
		return s.badStart(err)
	}
	defer z.Close()
	a := newAhead(z)
	defer a.close()
	return untarFrom(ctx, a, s)
}

// badStart reports a compression that could not even begin.
func (s *sink) badStart(err error) error {
	rule, detail, known := damageOfStream(err)
	if !known || rule == RuleTrailing {
		rule, detail = RuleDamaged, "no "+string(s.report.Format)+" header"
	}
	return s.broken("", rule, detail, err)
}

// untarFrom unpacks the tar that r delivers and reads r to its end, so that the
// check sums of the compression around it are verified.
func untarFrom(ctx context.Context, r io.Reader, s *sink) error {
	out := s.stream(ctx)
	return out.wait(untarMembers(out, r, s))
}

func untarMembers(out *stream, r io.Reader, s *sink) error {
	blocks := &countReader{r: r}
	t := tar.NewReader(blocks)
	last := ""
	for {
		if err := out.ctx.Err(); err != nil {
			return err
		}
		next := roundUp(blocks.read)
		h, err := t.Next()
		if errors.Is(err, io.EOF) && blocks.read < next+2*tarBlock {
			// Some writers leave the mark out, so this alone proves nothing. Inside
			// a compression a cut is found by its check sums.
			s.warn(last, "the archive stops after this member, without a whole end mark: it may have been cut there")
		}
		if errors.Is(err, io.EOF) {
			return s.tarEnd(out.ctx, blocks)
		}
		if err != nil {
			return s.badStream(last, err)
		}
		if err := s.passName(s.tarMember(out, h, t)); err != nil {
			return err
		}
		last = h.Name
	}
}

// badStream reports an error between members; last is the member before it.
func (s *sink) badStream(last string, err error) error {
	rule, detail := damage(err)
	if errors.Is(err, tar.ErrHeader) {
		rule, detail = RuleDamaged, "no valid tar header"
	}
	if last != "" {
		detail += ", after this member"
	}
	return s.broken(last, rule, detail, err)
}

func (s *sink) tarMember(out *stream, h *tar.Header, r io.Reader) error {
	if err := s.tarType(h); err != nil || h.Typeflag == tar.TypeXGlobalHeader || h.Typeflag == typeLabel {
		return err
	}
	dir := h.Typeflag == tar.TypeDir
	m := member{name: h.Name, mode: h.FileInfo().Mode(), at: saneTime(h.ModTime), size: h.Size, sparse: isSparse(h)}
	p, err := s.admit(h.Name, dir)
	if err != nil {
		return err
	}
	m.path = p
	s.saw(m, dir)
	if dir {
		return s.addFolder(p, m.at)
	}
	if rule, detail := s.limits.overFile(h.Size); rule != "" {
		return s.broken(h.Name, rule, detail, nil)
	}
	if s.onlyNames() {
		return s.charge(m, m.size, 1)
	}
	if err := s.mkdir(path.Dir(p)); err != nil {
		return err
	}
	return out.add(m, r)
}

// The types that archive/tar has no name for.
const (
	typeLabel     = 'V' // GNU: the volume's label, without content
	typeContinued = 'M' // GNU: the rest of a file of the volume before
)

func isSparse(h *tar.Header) bool {
	if h.Typeflag == tar.TypeGNUSparse {
		return true
	}
	_, pax := h.PAXRecords["GNU.sparse.realsize"]
	_, old := h.PAXRecords["GNU.sparse.size"]
	return pax || old
}

func (s *sink) tarType(h *tar.Header) error {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeCont, tar.TypeGNUSparse, tar.TypeXGlobalHeader, typeLabel:
		return nil
	case typeContinued:
		return s.broken(h.Name, RuleMultiDisk, "the archive is one part of several", nil)
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
