package archive

import (
	"context"
	"io"
	"os"

	"bagpipe/bags/files"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zip"
)

// deflater is a flate writer that the next member uses again: a new one is a
// megabyte to allocate and clear, which is all the cost of packing small files.
type deflater struct{ w *flate.Writer }

func (d *deflater) next(w io.Writer) (io.WriteCloser, error) {
	if d.w != nil {
		d.w.Reset(w)
		return d.w, nil
	}
	var err error
	d.w, err = flate.NewWriter(w, flate.DefaultCompression)
	return d.w, err
}

// zip packs member after member. The output of flate does not depend on the machine.
func (p *packer) zip(ctx context.Context, f *os.File) error {
	z := zip.NewWriter(f)
	z.RegisterCompressor(zip.Deflate, (&deflater{}).next)
	buf := make([]byte, files.CopyBuffer)
	for _, e := range p.entries() {
		h := &zip.FileHeader{Name: e.Path, Method: zip.Deflate, Modified: p.time(&e)}
		h.SetMode(e.Mode.Type() | p.mode(&e))
		if e.Mode.IsDir() {
			h.Name, h.Method = e.Path+"/", zip.Store
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if e.Mode.IsDir() {
			continue
		}
		if err := p.copyFile(ctx, w, &e, buf); err != nil {
			return err
		}
		p.report(0, 1)
	}
	return z.Close()
}
