package bags

import (
	"bufio"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

const inflateBuffer = 32 << 10

// inflaters are kept: a decoder's tables and window cost more than unpacking a
// small member.
var inflaters = sync.Pool{New: func() any {
	b := bufio.NewReaderSize(nil, inflateBuffer)
	return &inflater{in: b, out: flate.NewReader(b)}
}}

type inflater struct {
	in  *bufio.Reader
	out io.ReadCloser
}

// inflate is the zip package's hook: a decoder that reads in larger pieces than
// the library's own 4 KiB.
func inflate(r io.Reader) io.ReadCloser {
	f := inflaters.Get().(*inflater)
	f.in.Reset(r)
	if err := f.out.(flate.Resetter).Reset(f.in, nil); err != nil {
		f.out = flate.NewReader(f.in)
	}
	return &pooled{f: f}
}

type pooled struct{ f *inflater }

func (p *pooled) Read(b []byte) (int, error) {
	if p.f == nil {
		return 0, io.ErrClosedPipe
	}
	return p.f.out.Read(b)
}

func (p *pooled) Close() error {
	if p.f == nil {
		return nil
	}
	err := p.f.out.Close()
	p.f.in.Reset(nil)
	inflaters.Put(p.f)
	p.f = nil
	return err
}
