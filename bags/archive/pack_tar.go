package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"bagpipe/bags/files"
	"bagpipe/layout"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// zstdWriters is a number of its own and not the cores', so that the same content
// becomes the same bytes on every machine.
const zstdWriters = 2

func (p *packer) tar(ctx context.Context, f *os.File) error {
	out, err := compressor(f, p.o.Format)
	if err != nil {
		return err
	}
	t := tar.NewWriter(out)
	buf := make([]byte, files.CopyBuffer)
	for _, e := range p.entries() {
		h, err := p.tarHeader(&e)
		if err == nil {
			err = t.WriteHeader(h)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", layout.EncodePath(e.Path), err), out.Close())
		}
		if e.Mode.IsDir() {
			continue
		}
		if err := p.copyFile(ctx, t, &e, buf); err != nil {
			return errors.Join(err, out.Close())
		}
		p.report(0, 1)
	}
	return errors.Join(t.Close(), out.Close())
}

func (p *packer) tarHeader(e *files.Entry) (*tar.Header, error) {
	h := &tar.Header{Name: e.Path, Mode: int64(p.mode(e)), ModTime: p.time(e).Truncate(time.Second), Typeflag: tar.TypeReg, Size: e.Size}
	if e.Mode.IsDir() {
		h.Name, h.Typeflag, h.Size = e.Path+"/", tar.TypeDir, 0
	}
	if !utf8.ValidString(e.Path) {
		h.Format = tar.FormatGNU // pax records are UTF-8
	}
	if p.o.Reproducible || p.o.Bag {
		return h, nil
	}
	var s unix.Stat_t
	if err := unix.Lstat(p.tree.Dir+"/"+e.Path, &s); err != nil {
		return nil, err
	}
	h.Uid, h.Gid = int(s.Uid), int(s.Gid)
	return h, nil
}

func compressor(w io.Writer, f Format) (io.WriteCloser, error) {
	switch f {
	case TarGzip:
		return gzip.NewWriter(w), nil
	case TarZstd:
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(zstdWriters))
	}
	return plainWriter{w}, nil
}

type plainWriter struct{ io.Writer }

func (plainWriter) Close() error { return nil }
