package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"bagpipe/bags/archive/internal/compress"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/files"

	"golang.org/x/sync/errgroup"
)

// smallMember is up to where a member of a stream is read into memory whole and
// written by another goroutine, while the next is being decompressed.
const smallMember = 128 << 10

// holeBlock is the run of zeros that becomes a hole in a sparse file.
const holeBlock = 64 << 10

// write writes one admitted file whose folder exists, or only reads it, without a
// placer. Safe for several goroutines, each with its own placer.
func (s *sink) write(ctx context.Context, pl *files.Creator, m member, r io.Reader) error {
	var out output = nowhere{}
	if pl != nil {
		f, err := pl.Create(m.path, files.FilePerm|m.mode&0o111)
		if err != nil {
			return fmt.Errorf("unpack %s: %w", s.Archive, err)
		}
		out = f
	}
	n, err := s.copy(ctx, out, m, r)
	if err == nil && m.sparse {
		err = out.Truncate(n)
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	if m.size >= 0 && n != m.size {
		return s.Broken(m.name, files.RuleSize, fmt.Sprintf("%d bytes where the archive promises %d", n, m.size), nil)
	}
	if pl != nil && !m.at.IsZero() {
		if err := pl.SetTime(m.path, m.at); err != nil {
			return fmt.Errorf("unpack %s: %w", s.Archive, err)
		}
	}
	return s.charge(m, 0, 1)
}

// output is a newFile, or nowhere.
type output interface {
	io.Writer
	Hole(n int64) error
	Truncate(n int64) error
	Close() error
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Hole(int64) error            { return nil }
func (nowhere) Truncate(int64) error        { return nil }
func (nowhere) Close() error                { return nil }

func (s *sink) copy(ctx context.Context, out output, m member, r io.Reader) (n int64, err error) {
	buf := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buf)
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		got, rerr := r.Read(*buf)
		n += int64(got)
		if rule, detail := s.o.Limits.OverFile(n); rule != "" {
			return n, s.Broken(m.name, rule, detail, nil)
		}
		if m.size >= 0 && n > m.size {
			return n, s.Broken(m.name, files.RuleSize, fmt.Sprintf("more than the %d bytes the archive promises", m.size), nil)
		}
		if err := s.charge(m, int64(got), 0); err != nil {
			return n, err
		}
		if err := putBytes(out, (*buf)[:got], m.sparse); err != nil {
			return n, fmt.Errorf("unpack %s: %w", s.Archive, err)
		}
		if errors.Is(rerr, io.EOF) {
			return n, nil
		}
		if rerr != nil {
			return n, compress.Broken(&s.Notes, m.name, rerr)
		}
	}
}

func putBytes(out output, b []byte, sparse bool) error {
	for sparse && len(b) > 0 {
		block := b[:min(len(b), holeBlock)]
		if !volume.IsZero(block) {
			if _, err := out.Write(block); err != nil {
				return err
			}
		} else if err := out.Hole(int64(len(block))); err != nil {
			return err
		}
		b = b[len(block):]
	}
	if len(b) == 0 {
		return nil
	}
	_, err := out.Write(b)
	return err
}

// charge counts bytes before they are written, so that a limit is never passed
// on disk.
func (s *sink) charge(m member, bytes, files int64) error {
	s.meter.mu.Lock()
	defer s.meter.mu.Unlock()
	s.meter.done.Bytes += bytes
	s.meter.done.Files += files
	if rule, detail := s.o.Limits.overBytes(s.meter.done.Bytes, s.input); rule != "" {
		return s.Broken(m.name, rule, detail, nil)
	}
	if s.meter.progress != nil {
		s.meter.progress(s.meter.done)
	}
	return nil
}

// stream writes the members that one reader delivers one after the other: small
// ones on other goroutines. Used by the reading goroutine; wait ends it.
type stream struct {
	s     *sink
	pl    *files.Creator
	group *errgroup.Group
	small chan smallFile
	free  chan []byte
}

type smallFile struct {
	member
	data []byte
}

// stream starts the writers. The context it gives, for the calls below, ends with the
// first that fails.
func (s *sink) stream(ctx context.Context) (*stream, context.Context) {
	t := &stream{s: s}
	t.group, ctx = errgroup.WithContext(ctx)
	if s.root == nil {
		return t, ctx
	}
	t.pl = &files.Creator{Root: s.root}
	const writers = 2
	t.small = make(chan smallFile, 2*writers)
	t.free = make(chan []byte, 4*writers)
	for range cap(t.free) {
		t.free <- nil
	}
	for range writers {
		t.group.Go(func() error {
			pl := &files.Creator{Root: s.root}
			defer pl.Close()
			for m := range t.small {
				if err := t.writeSmall(pl, m); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return t, ctx
}

func (t *stream) writeSmall(pl *files.Creator, m smallFile) error {
	f, err := pl.Create(m.path, files.FilePerm|m.mode&0o111)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", t.s.Archive, err)
	}
	_, err = f.Write(m.data)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("unpack %s: %w", t.s.Archive, &os.PathError{Op: "write", Path: m.path, Err: err})
	}
	if !m.at.IsZero() {
		if err := pl.SetTime(m.path, m.at); err != nil {
			return fmt.Errorf("unpack %s: %w", t.s.Archive, err)
		}
	}
	t.free <- m.data[:0]
	return t.s.charge(m.member, 0, 1)
}

// add writes one admitted member whose folder exists.
func (t *stream) add(ctx context.Context, m member, r io.Reader) error {
	if t.pl == nil || m.size < 0 || m.size > smallMember || m.sparse {
		return t.s.write(ctx, t.pl, m, r)
	}
	var buf []byte
	select {
	case buf = <-t.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	if cap(buf) < int(m.size)+1 {
		buf = make([]byte, 0, max(int(m.size)+1, 4<<10))
	}
	if err := t.s.charge(m, m.size, 0); err != nil {
		return err
	}
	data := buf[:m.size]
	if _, err := io.ReadFull(r, data); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return t.s.Broken(m.name, files.RuleTruncated, "the data ends early", err)
		}
		return compress.Broken(&t.s.Notes, m.name, err)
	}
	if err := atEnd(r, m, t.s); err != nil {
		return err
	}
	select {
	case t.small <- smallFile{m, data}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// atEnd reads on until the reader says that the member ends here: only then has
// it compared check sums.
func atEnd(r io.Reader, m member, s *sink) error {
	var one [1]byte
	switch n, err := io.ReadFull(r, one[:]); {
	case n > 0:
		return s.Broken(m.name, files.RuleSize, fmt.Sprintf("more than the %d bytes the archive promises", m.size), nil)
	case errors.Is(err, io.EOF):
		return nil
	default:
		return compress.Broken(&s.Notes, m.name, err)
	}
}

// wait ends the writers; the first error of theirs or of the reader's counts.
func (t *stream) wait(err error) error {
	if t.small != nil {
		close(t.small)
		t.pl.Close()
	}
	werr := t.group.Wait()
	if werr != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return werr
	}
	return err
}
