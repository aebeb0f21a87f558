package compress

import (
	"io"
	"sync"

	"bagpipe/layout/deflate"
)

// inflaters are kept: a decoder's tables and window cost more than unpacking a
// small member.
var inflaters = sync.Pool{New: func() any { return deflate.NewReader() }}

// Inflate is the zip package's hook.
func Inflate(r io.Reader) io.ReadCloser {
	d := inflaters.Get().(*deflate.Reader)
	d.Reset(r)
	return &pooled{d}
}

type pooled struct{ d *deflate.Reader }

func (p *pooled) Read(b []byte) (int, error) {
	if p.d == nil {
		return 0, io.ErrClosedPipe
	}
	return p.d.Read(b)
}

func (p *pooled) Close() error {
	if p.d != nil {
		p.d.Reset(nil)
		inflaters.Put(p.d)
		p.d = nil
	}
	return nil
}
