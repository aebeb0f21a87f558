package bags

import (
	"archive/tar"
	"context"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// walkTar calls do for every member; at is the offset of its bytes where seeks is
// set. It reads on to the stream's end, so that check sums around it are verified,
// and tells whether an end mark was there.
func (l *listedArchive) walkTar(ctx context.Context, src *source, seeks bool, do func(*tar.Header, io.Reader, int64) error) (end bool, err error) {
	z, err := l.stream(src)
	if err != nil {
		return false, err
	}
	defer z.Close()
	var blocks io.Reader = &countReader{r: z}
	if seeks {
		blocks = src
	}
	t := tar.NewReader(blocks)
	read := func() (int64, error) {
		if c, ok := blocks.(*countReader); ok {
			return c.read, nil
		}
		return src.Seek(0, io.SeekCurrent)
	}
	last, total := "", int64(0)
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, l.badTar(last, err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		at, err := read()
		if err != nil {
			return false, err
		}
		if err := do(h, t, at); err != nil {
			return false, err
		}
		last, total = h.Name, at
		if tarMode(h).IsRegular() && !isSparse(h) {
			total += roundUp(h.Size)
		}
	}
	at, err := read()
	if err != nil {
		return false, err
	}
	return at > total, l.tarEnd(ctx, blocks)
}

// tarEnd reads what follows the end mark.
func (l *listedArchive) tarEnd(ctx context.Context, r io.Reader) error {
	buf := make([]byte, copyBuffer)
	for total := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(buf)
		if !isZero(buf[:n]) {
			return l.broken("", RuleTrailing, "data follows the end of the archive")
		}
		total += int64(n)
		if rule, detail := l.limits.overBytes(total, l.input); rule != "" {
			return l.broken("", rule, detail)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return l.badTar("", err)
		}
	}
}

func (l *listedArchive) badTar(last string, err error) error {
	var broken *Error
	if errors.As(err, &broken) {
		return err
	}
	rule, detail := damage(err)
	switch {
	case errors.Is(err, tar.ErrHeader):
		rule, detail = RuleDamaged, "no valid tar header"
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, zstd.ErrMagicMismatch):
		rule, detail = RuleTrailing, "data that is no part of the archive follows"
	}
	if last != "" {
		detail += ", in or after this member"
	}
	return l.broken(last, rule, detail)
}

// tarErrors says of damage which member it met.
type tarErrors struct {
	r    io.Reader
	l    *listedArchive
	name string
}

func (e *tarErrors) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = e.l.badTar(e.name, err)
	}
	return n, err
}
