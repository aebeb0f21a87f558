package target

import (
	"context"
	"sync"
	"time"
)

// pace bounds bytes a second, over all that take from it.
type pace struct {
	perSecond float64

	mu   sync.Mutex // guards free
	free time.Time  // when what was taken so far has gone
}

// take waits until n more bytes may go.
func (p *pace) take(ctx context.Context, n int) error {
	p.mu.Lock()
	now := time.Now()
	if p.free.Before(now) {
		p.free = now
	}
	wait := p.free.Sub(now)
	p.free = p.free.Add(time.Duration(float64(n) / p.perSecond * float64(time.Second)))
	p.mu.Unlock()
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// paced is a backend whose bytes, there and back, are bounded.
type paced struct {
	backend
	pace pace
}

func (p *paced) open(ctx context.Context, name string, offset int64) (reader, error) {
	r, err := p.backend.open(ctx, name, offset)
	if err != nil {
		return nil, err
	}
	return p.reader(ctx, r), nil
}

func (p *paced) write(ctx context.Context, name string, f file) error {
	open := f.open
	f.open = func(offset int64) (reader, error) {
		r, err := open(offset)
		if err != nil {
			return nil, err
		}
		return p.reader(ctx, r), nil
	}
	return p.backend.write(ctx, name, f)
}

func (p *paced) reader(ctx context.Context, r reader) reader {
	return &reading{r, func(b []byte) (int, error) {
		n, err := r.Read(b[:min(len(b), 256<<10)])
		if err := p.pace.take(ctx, n); err != nil {
			return n, err
		}
		return n, err
	}}
}

// bounded is a backend of which so many files are sent and read at once, of all puts and looks together.
type bounded struct {
	backend
	places chan struct{}
}

func (b *bounded) take(ctx context.Context) error {
	select {
	case b.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *bounded) give() { <-b.places }

func (b *bounded) write(ctx context.Context, name string, f file) error {
	if err := b.take(ctx); err != nil {
		return err
	}
	defer b.give()
	return b.backend.write(ctx, name, f)
}

// open takes a place until the reader is closed.
func (b *bounded) open(ctx context.Context, name string, offset int64) (reader, error) {
	if err := b.take(ctx); err != nil {
		return nil, err
	}
	r, err := b.backend.open(ctx, name, offset)
	if err != nil {
		b.give()
		return nil, err
	}
	return &placed{r, sync.OnceFunc(b.give)}, nil
}

// placed gives its place back when it is closed.
type placed struct {
	reader
	give func()
}

func (p *placed) Close() error {
	defer p.give()
	return p.reader.Close()
}

// unpaced is the backend below the bounds on its rate and files.
func unpaced(b backend) backend {
	for {
		switch w := b.(type) {
		case *paced:
			b = w.backend
		case *bounded:
			b = w.backend
		default:
			return b
		}
	}
}
