package bags

import (
	"context"
	"io"
	"os"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zip"
)

// zip packs member after member. What flate makes of its input does not depend on
// the machine.
func (p *packer) zip(ctx context.Context, f *os.File) error {
	z := zip.NewWriter(f)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.DefaultCompression)
	})
	buf := make([]byte, copyBuffer)
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
