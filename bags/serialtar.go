package bags

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// tarBag is a bag in a tar. Where the tar is plain and has no sparse members, each
// has its offset in the file and is opened there; otherwise tag files are in the
// spool, and hashing goes through the tar once more.
type tarBag struct {
	l      *listedArchive
	src    *source
	spool  *os.File // nil without one
	at     map[string]section
	direct bool
}

type section struct{ at, size int64 }

// stream is the tar inside its compression.
func (l *listedArchive) stream(src *source) (io.ReadCloser, error) {
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	c, compressed := compressionOf(l.format)
	if !compressed {
		return io.NopCloser(src), nil
	}
	z, err := openAhead(c, src, l.limits.Memory)
	if err != nil {
		rule, detail := damageAtStart(l.format, err)
		return nil, l.broken("", rule, detail)
	}
	return z, nil
}

func (l *listedArchive) listTar(ctx context.Context, src *source) (_ contents, err error) {
	b := &tarBag{l: l, src: src, at: map[string]section{}, direct: l.format == Tar && !hasSparse(ctx, src)}
	defer func() {
		if err != nil && b.spool != nil {
			err = errors.Join(err, b.spool.Close())
		}
	}()
	end, err := l.walkTar(ctx, src, b.direct, func(h *tar.Header, r io.Reader, at int64) error {
		m := archiveMember{stored: h.Name, size: h.Size, mode: tarMode(h), time: h.ModTime, at: -1}
		if !m.mode.IsRegular() {
			m.size = 0
		}
		before := len(l.members)
		if err := l.add(m); err != nil || len(l.members) == before {
			return err
		}
		return b.note(&l.members[before], r, at)
	})
	if err != nil {
		return nil, err
	}
	if !end {
		l.warned = append(l.warned, Finding{Code: CodeArchive, Severity: SeverityWarning,
			Text: "the archive stops without an end mark: it may have been cut there"})
	}
	return b, nil
}

// hasSparse looks for members whose bytes do not stand in the tar as they are.
func hasSparse(ctx context.Context, src *source) bool {
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return true
	}
	t := tar.NewReader(src)
	for ctx.Err() == nil {
		h, err := t.Next()
		if err != nil {
			return false // the walk reports it
		}
		if isSparse(h) {
			return true
		}
	}
	return false
}

// note remembers where a member's bytes are, and keeps those of a tag file that a
// compressed tar would have to be read again for.
func (b *tarBag) note(m *archiveMember, r io.Reader, at int64) error {
	switch {
	case b.direct:
		b.at[m.path] = section{at, m.size}
	case m.mode.IsRegular() && isSpecified(m.path):
		return b.keep(m, r)
	}
	return nil
}

// isSpecified tells whether p may be a tag file that has to be read.
func isSpecified(p string) bool {
	dir, name := path.Split(p)
	if strings.Count(dir, "/") > 1 {
		return false
	}
	switch name {
	case declarationFile, infoFile, oldInfoFile, fetchName:
		return true
	}
	_, isManifest := manifestAlgorithm(name, manifestPrefix)
	_, isTag := manifestAlgorithm(name, tagPrefix)
	return isManifest || isTag
}

func (b *tarBag) keep(m *archiveMember, r io.Reader) error {
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
	if at+m.size > spoolMost {
		return b.l.broken(m.stored, RuleBytes, fmt.Sprintf("the tag files have more than %d bytes", int64(spoolMost)))
	}
	if _, err := io.Copy(b.spool, &tarErrors{r, b.l, m.stored}); err != nil {
		return err
	}
	b.at[m.path] = section{at, m.size}
	return nil
}

// tarMode marks what is neither file nor folder.
func tarMode(h *tar.Header) fs.FileMode {
	perm := h.FileInfo().Mode() & fs.ModePerm
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		return perm
	case tar.TypeDir, typeDumpdir:
		return perm | fs.ModeDir
	case tar.TypeSymlink:
		return perm | fs.ModeSymlink
	}
	return perm | fs.ModeIrregular
}

func (b *tarBag) open(p string) (io.ReadCloser, error) {
	s, ok := b.at[p]
	switch {
	case !ok:
		return nil, fs.ErrNotExist
	case b.direct:
		return io.NopCloser(io.NewSectionReader(b.src, s.at, s.size)), nil
	}
	return io.NopCloser(io.NewSectionReader(b.spool, s.at, s.size)), nil
}

func (b *tarBag) close() error {
	if b.spool != nil {
		return errors.Join(b.spool.Close(), b.src.f.Close())
	}
	return b.src.f.Close()
}

func (b *tarBag) hash(ctx context.Context, plan []hashItem, o HashOptions, each func(Hashed) error) error {
	if b.direct {
		return hashFrom(ctx, func() fileOpener { return tarOpener{b} }, plan, o, each)
	}
	return b.hashStream(ctx, plan, o, each)
}

type tarOpener struct{ bag *tarBag }

func (o tarOpener) open(p string) (fileReader, error) {
	s := o.bag.at[p]
	return &tarFileReader{io.NewSectionReader(o.bag.src, s.at, s.size)}, nil
}

func (tarOpener) close() {}

type tarFileReader struct{ io.Reader }

func (r *tarFileReader) endsShort() bool { return false }
func (r *tarFileReader) close() error    { return nil }

// inMemory is how large a member may be to be handed to another goroutine whole;
// of larger ones each digest has its goroutine.
const inMemory = 1 << 20

// hashStream decompresses the tar once more. Small members are hashed by other
// goroutines while the next are decompressed.
func (b *tarBag) hashStream(ctx context.Context, plan []hashItem, o HashOptions, each func(Hashed) error) error {
	p := newHashPool(plan, o, each)
	wanted := make(map[string]hashItem, len(plan))
	for _, it := range plan {
		wanted[it.path] = it
	}
	buffers := sync.Pool{New: func() any { return new(bytes.Buffer) }}
	type small struct {
		it   hashItem
		data *bytes.Buffer
	}
	ready := make(chan small, 4)
	g, ctx := errgroup.WithContext(ctx)
	for range max(1, o.Workers) {
		g.Go(func() error {
			w := newHashWorker(p)
			for s := range ready {
				if err := w.file(ctx, &tarFileReader{s.data}, s.it); err != nil {
					return err
				}
				s.data.Reset()
				buffers.Put(s.data)
			}
			return nil
		})
	}
	g.Go(func() error {
		defer close(ready)
		w := newHashWorker(p)
		_, err := b.l.walkTar(ctx, b.src, false, func(h *tar.Header, r io.Reader, _ int64) error {
			it, ok := wanted[path.Clean(h.Name)]
			if !ok {
				return nil
			}
			r = &tarErrors{r, b.l, h.Name}
			if h.Size > inMemory {
				return w.file(ctx, &tarFileReader{r}, it)
			}
			data := buffers.Get().(*bytes.Buffer)
			if _, err := data.ReadFrom(r); err != nil {
				return err
			}
			select {
			case ready <- small{it, data}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		return err
	})
	return g.Wait()
}
