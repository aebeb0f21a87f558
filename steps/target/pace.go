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
