package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"bagpipe/bags/archive/internal/tars"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/files"
)

// tarView is a bag in a tar. Where the tar is plain and has no sparse members, each
// has its offset in the file and is opened there; otherwise tag files are in the
// spool, and hashing goes through the tar once more.
type tarView struct {
	v      *View
	spool  *os.File // nil without one
	at     map[string]section
	direct bool
}

type section struct{ at, size int64 }

// stream is the tar inside its compression.
func (v *View) stream() (io.ReadCloser, error) {
	if _, err := v.src.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	c, compressed := v.Format.compressed()
	if !compressed {
		return io.NopCloser(v.src), nil
	}
	z, err := c.OpenAhead(v.src, v.limits.Memory)
	if err != nil {
		return nil, tars.BrokenStart(&v.notes, string(v.Format), err)
	}
	return z, nil
}

func (v *View) listTar(ctx context.Context) (_ viewed, err error) {
	b := &tarView{v: v, at: map[string]section{}, direct: v.Format == Tar && !hasSparse(ctx, v.src)}
	defer func() {
		if err != nil && b.spool != nil {
			err = errors.Join(err, b.spool.Close())
		}
	}()
	end, err := v.walkTar(ctx, b.direct, func(h *tar.Header, r io.Reader, at int64) error {
		m := Member{Size: h.Size, Mode: tarMode(h), Time: h.ModTime}
		if !m.Mode.IsRegular() {
			m.Size = 0
		}
		p, err := v.add(h.Name, m)
		switch {
		case err != nil || p == "":
			return err
		case b.direct:
			b.at[p] = section{at, m.Size}
		case m.Mode.IsRegular() && v.keep(p):
			return b.keep(p, h.Name, m.Size, r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !end {
		v.notes.Warn("", "the archive stops without an end mark: it may have been cut there")
	}
	return b, nil
}

// hasSparse looks for members whose bytes do not stand in the tar as they are.
func hasSparse(ctx context.Context, src *volume.File) bool {
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return true
	}
	t := tar.NewReader(src)
	for ctx.Err() == nil {
		h, err := t.Next()
		if err != nil {
			return false // the walk reports it
		}
		if tars.IsSparse(h) {
			return true
		}
	}
	return false
}

// keep puts the bytes of a file that a compressed tar would have to be read again for
// into the spool.
func (b *tarView) keep(p, stored string, size int64, r io.Reader) error {
	if b.spool == nil {
		f, err := os.CreateTemp("", "bagpipe-tags-")
		if err != nil {
			return err
		}
		b.spool = f
		if err := os.Remove(f.Name()); err != nil {
			return err
		}
	}
	at, err := b.spool.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if at+size > spoolMost {
		return b.v.notes.Broken(stored, files.RuleBytes, fmt.Sprintf("the tag files have more than %d bytes", int64(spoolMost)), nil)
	}
	if _, err := io.Copy(b.spool, &tarErrors{r, b.v, stored}); err != nil {
		return err
	}
	b.at[p] = section{at, size}
	return nil
}

// tarMode marks what is neither file nor folder.
func tarMode(h *tar.Header) fs.FileMode {
	perm := h.FileInfo().Mode() & fs.ModePerm
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		return perm
	case tar.TypeDir, tars.TypeDumpdir:
		return perm | fs.ModeDir
	case tar.TypeSymlink:
		return perm | fs.ModeSymlink
	}
	return perm | fs.ModeIrregular
}

func (b *tarView) open(p string) (io.ReadCloser, error) {
	s, ok := b.at[p]
	switch {
	case !ok:
		return nil, fs.ErrNotExist
	case b.direct:
		return io.NopCloser(io.NewSectionReader(b.v.src, s.at, s.size)), nil
	}
	return io.NopCloser(io.NewSectionReader(b.spool, s.at, s.size)), nil
}

func (b *tarView) close() error {
	if b.spool != nil {
		return b.spool.Close()
	}
	return nil
}

func (b *tarView) hash(ctx context.Context, plan []files.Planned, o files.HashOptions, each func(files.Hashed) error) error {
	if b.direct {
		return files.HashOpened(ctx, b.open, plan, o, each)
	}
	return files.HashStream(ctx, plan, o, each, func(ctx context.Context, take func(string, int64, io.Reader) error) error {
		_, err := b.v.walkTar(ctx, false, func(h *tar.Header, r io.Reader, _ int64) error {
			return take(path.Clean(h.Name), h.Size, &tarErrors{r, b.v, h.Name})
		})
		return err
	})
}
