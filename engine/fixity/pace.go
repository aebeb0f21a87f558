package fixity

import (
	"context"
	"sync"
	"time"

	"bagpipe/bags/files"
)

// pace counts the bytes that a sweep reads, and writes where it heals, and bounds them in a second, over all its
// items. Whoever has read waits until what was read may have been: what a file holds more than that goes at once.
// The nil pace counts and bounds nothing.
type pace struct {
	perSecond float64 // 0: any number

	mu    sync.Mutex // guards the rest
	free  time.Time  // when what was read so far may have been
	bytes int64      // so far
}

func newPace(perSecond int64) *pace { return &pace{perSecond: float64(max(perSecond, 0))} }

// take waits for n bytes that were read.
func (p *pace) take(ctx context.Context, n int64) error {
	if p == nil {
		return ctx.Err()
	}
	p.mu.Lock()
	p.bytes += n
	if p.perSecond == 0 {
		p.mu.Unlock()
		return ctx.Err()
	}
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

// each has whoever says how many bytes went wait; nil of the nil pace.
func (p *pace) each(ctx context.Context) func(bytes int64) {
	if p == nil {
		return nil
	}
	return func(bytes int64) { _ = p.take(ctx, bytes) } // whoever says so asks ctx itself
}

// progress has whoever hashes files wait; nil of the nil pace.
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
