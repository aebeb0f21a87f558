package archive

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"time"

	"bagpipe/bags/archive/internal/codepage"
	"bagpipe/bags/archive/internal/tars"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/files"
)

// untar unpacks a tar, plain or compressed.
func untar(ctx context.Context, src *volume.File, s *sink) error {
	c, compressed := s.report.Format.compressed()
	if !compressed {
		return untarFrom(ctx, src, s)
	}
	z, err := c.OpenAhead(src, s.o.Limits.Memory)
	if err != nil {
		return tars.BrokenStart(&s.Notes, string(s.report.Format), err)
	}
	defer z.Close()
	return untarFrom(ctx, z, s)
}

// untarFrom unpacks the tar that r delivers and reads r to its end, so that the
// check sums of the compression around it are verified.
func untarFrom(ctx context.Context, r io.Reader, s *sink) error {
	out, ctx := s.stream(ctx)
	return out.wait(untarMembers(ctx, out, r, s))
}

func untarMembers(ctx context.Context, out *stream, r io.Reader, s *sink) error {
	// Nothing is guessed here: a stream's names are not known before they are needed.
	names, _, err := codepage.New(s.o.Names, nil)
	if err != nil {
		return err
	}
	blocks := &tars.Counter{R: r}
	t := tar.NewReader(blocks)
	last := ""
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := tars.RoundUp(blocks.Seen)
		h, err := t.Next()
		if errors.Is(err, io.EOF) && blocks.Seen < next+2*tars.Block {
			// Some writers leave the mark out, so this alone proves nothing. Inside
			// a compression a cut is found by its check sums.
			s.Warn(last, "the archive stops after this member, without a whole end mark: it may have been cut there")
		}
		if errors.Is(err, io.EOF) {
			return tars.ReadEnd(ctx, blocks, func(n int64) (files.Rule, string) { return s.o.Limits.overBytes(n, s.input) }, &s.Notes)
		}
		if err != nil {
			return tars.Broken(&s.Notes, last, err)
		}
		h.Name = names.Decode(h.Name)
		if err := s.passName(s.tarMember(ctx, out, h, t)); err != nil {
			return err
		}
		last = h.Name
	}
}

func (s *sink) tarMember(ctx context.Context, out *stream, h *tar.Header, r io.Reader) error {
	if err := s.tarType(h); err != nil || h.Typeflag == tar.TypeXGlobalHeader || h.Typeflag == tars.TypeLabel {
		return err
	}
	dir := h.Typeflag == tar.TypeDir || h.Typeflag == tars.TypeDumpdir
	m := member{name: h.Name, mode: h.FileInfo().Mode(), at: saneTime(h.ModTime), size: h.Size, sparse: tars.IsSparse(h)}
	p, err := s.admit(h.Name, dir)
	if err != nil {
		return err
	}
	m.path = p
	s.saw(m, dir)
	if dir {
		return s.addFolder(p, m.at)
	}
	if rule, detail := s.o.Limits.OverFile(h.Size); rule != "" {
		return s.Broken(h.Name, rule, detail, nil)
	}
	if s.onlyNames() {
		s.peek(p, h.Size, func() (io.ReadCloser, error) { return io.NopCloser(r), nil })
		return s.charge(m, m.size, 1)
	}
	if err := s.mkdir(path.Dir(p)); err != nil {
		return err
	}
	return out.add(ctx, m, r)
}

func (s *sink) tarType(h *tar.Header) error {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeCont, tar.TypeGNUSparse, tar.TypeXGlobalHeader, tars.TypeLabel, tars.TypeDumpdir:
		return nil
	case tars.TypeContinued:
		return s.Broken(h.Name, files.RuleMultiDisk, "the archive is one part of several", nil)
	case tars.TypeSolaris:
		return s.Broken(h.Name, files.RuleMethod, "an extended header of Solaris (type X), which is not supported: what it says of the next member would be lost", nil)
	case tar.TypeSymlink:
		return s.Broken(h.Name, files.RuleSymlink, files.RefusedLink(files.SymbolicLinks, h.Linkname), nil)
	case tar.TypeLink:
		return s.Broken(h.Name, files.RuleHardLink, files.RefusedLink(files.HardLinks, h.Linkname), nil)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return s.Broken(h.Name, files.RuleSpecial, "devices and FIFOs are not taken", nil)
	}
	return s.Broken(h.Name, files.RuleSpecial, "neither a file nor a folder (type "+string(rune(h.Typeflag))+")", nil)
}

// saneTime drops times that no file system keeps.
func saneTime(t time.Time) time.Time {
	if y := t.Year(); y < 1902 || y > 2400 || t.Unix() == 0 {
		return time.Time{}
	}
	return t
}
