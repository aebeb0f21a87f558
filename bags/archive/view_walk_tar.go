package archive

import (
	"archive/tar"
	"context"
	"errors"
	"io"

	"bagpipe/bags/archive/internal/tars"
	"bagpipe/bags/files"
)

// walkTar calls do for every member; at is the offset of its bytes where seeks is
// set. It reads on to the stream's end, so that check sums around it are verified,
// and reports whether an end mark was there.
func (v *View) walkTar(ctx context.Context, seeks bool, do func(*tar.Header, io.Reader, int64) error) (end bool, err error) {
	z, err := v.stream()
	if err != nil {
		return false, err
	}
	defer z.Close()
	var blocks io.Reader = &tars.Counter{R: z}
	if seeks {
		blocks = v.src
	}
	t := tar.NewReader(blocks)
	read := func() (int64, error) {
		if c, ok := blocks.(*tars.Counter); ok {
			return c.Seen, nil
		}
		return v.src.Seek(0, io.SeekCurrent)
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
			return false, v.badTar(last, err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader || h.Typeflag == tars.TypeLabel {
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
		if tarMode(h).IsRegular() && !tars.IsSparse(h) || h.Typeflag == tars.TypeDumpdir {
			total += tars.RoundUp(h.Size)
		}
	}
	at, err := read()
	if err != nil {
		return false, err
	}
	return at > total, v.tarEnd(ctx, blocks)
}

// tarEnd reads what follows the end mark.
func (v *View) tarEnd(ctx context.Context, r io.Reader) error {
	rule, detail, err := tars.ReadEnd(ctx, r, func(n int64) (files.Rule, string) { return v.limits.overBytes(n, v.input) })
	switch {
	case rule != "":
		return v.broken("", rule, detail)
	case err != nil && ctx.Err() == nil:
		return v.badTar("", err)
	}
	return err
}

func (v *View) badTar(last string, err error) error {
	var broken *files.Error
	if errors.As(err, &broken) {
		return err
	}
	rule, detail := tars.Damage(last, err)
	return v.broken(last, rule, detail)
}

// tarErrors says of damage which member it met.
type tarErrors struct {
	r    io.Reader
	v    *View
	name string
}

func (e *tarErrors) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = e.v.badTar(e.name, err)
	}
	return n, err
}
