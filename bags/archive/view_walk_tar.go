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
			return false, tars.Broken(&v.notes, last, err)
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
	return at > total, tars.ReadEnd(ctx, blocks, func(n int64) (files.Rule, string) { return v.limits.overBytes(n, v.input) }, &v.notes)
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
		err = tars.Broken(&e.v.notes, e.name, err)
	}
	return n, err
}
