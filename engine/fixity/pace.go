package fixity

import (
	"context"
	"sync"
	"time"

	"bagpipe/bags/files"
)

// pace bounds the bytes that a check reads in a second, over all its items. Whoever has read
// waits until what was read may have been: what a file holds more than that goes at once.
type pace struct {
	perSecond float64

	mu   sync.Mutex // guards free
	free time.Time  // when what was read so far may have been
}

// newPace gives a bound; nil, which bounds nothing, for none.
func newPace(perSecond int64) *pace {
	if perSecond <= 0 {
		return nil
	}
	return &pace{perSecond: float64(perSecond)}
}

// take waits for n bytes that were read.
func (p *pace) take(ctx context.Context, n int64) error {
	if p == nil {
		return ctx.Err()
	}
	p.mu.Lock()
	now := time.Now()
	if p.free.IsZero() || now.Sub(p.free) > time.Second { // what was not read is not made up for
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(n) / p.perSecond * float64(time.Second)))
	wait := p.free.Sub(now)
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

// progress has whoever hashes files wait; nil where nothing is bounded.
func (p *pace) progress(ctx context.Context) func(files.Progress) {
	if p == nil {
		return nil
	}
	var told int64
	return func(now files.Progress) {
		more := now.Bytes - told
		told = now.Bytes
		_ = p.take(ctx, more) // the hashing asks ctx itself
	}
}
