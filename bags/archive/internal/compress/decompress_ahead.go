package compress

import "io"

// ahead decompresses on a goroutine of its own, a few blocks ahead of its reader:
// while members are written, the next are being decompressed.
type ahead struct {
	full chan aheadBlock
	free chan []byte
	stop chan struct{} // closed by close
	done chan struct{} // closed when the goroutine has ended

	block aheadBlock // what is being handed on
	at    int
}

type aheadBlock struct {
	data []byte
	err  error
}

const (
	aheadSize  = 256 << 10
	aheadCount = 4
)

func newAhead(r io.Reader) *ahead {
	a := &ahead{
		full: make(chan aheadBlock, aheadCount), free: make(chan []byte, aheadCount),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	for range aheadCount {
		a.free <- nil
	}
	go a.run(r)
	return a
}

func (a *ahead) run(r io.Reader) {
	defer close(a.done)
	for {
		var buf []byte
		select {
		case buf = <-a.free:
		case <-a.stop:
			return
		}
		if buf == nil {
			buf = make([]byte, aheadSize)
		}
		n, err := 0, error(nil)
		for n < len(buf) && err == nil {
			var got int
			got, err = r.Read(buf[n:])
			n += got
		}
		a.full <- aheadBlock{buf[:n], err} // never blocks: there are no more blocks than room
		if err != nil {
			return
		}
	}
}

// Read hands on what was decompressed, and then the error it ended with, again
// and again.
func (a *ahead) Read(p []byte) (int, error) {
	for a.at == len(a.block.data) {
		if a.block.err != nil {
			return 0, a.block.err
		}
		if a.block.data != nil {
			a.free <- a.block.data[:cap(a.block.data)]
		}
		a.block, a.at = <-a.full, 0
	}
	n := copy(p, a.block.data[a.at:])
	a.at += n
	return n, nil
}

// close ends the goroutine and waits for it.
func (a *ahead) close() {
	close(a.stop)
	<-a.done
}

// aheadOf is an ahead that closes what it reads.
type aheadOf struct {
	*ahead
	z io.Closer
}

// OpenAhead decompresses r ahead of its reader.
func (c Compression) OpenAhead(r io.Reader, memory int64) (io.ReadCloser, error) {
	z, err := c.Open(r, memory)
	if err != nil {
		return nil, err
	}
	return aheadOf{newAhead(z), z}, nil
}

// Close ends the goroutine, and then what it read from.
func (a aheadOf) Close() error {
	a.close()
	return a.z.Close()
}
