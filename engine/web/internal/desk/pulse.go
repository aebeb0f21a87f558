package desk

import (
	"context"
	"sync"
	"time"
)

// Pulse tells everybody who waits that the branch moved. Its lock guards the tip and the
// channel that the next move closes.
type Pulse struct {
	mu   sync.Mutex
	tip  string
	next chan struct{}
}

// Keep looks at the tip until ctx ends: one look for all who wait.
func (p *Pulse) Keep(ctx context.Context, tip func() (string, error)) {
	const look = 100 * time.Millisecond // it reads one small file
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		p.Look(tip)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Look looks at the tip now, for who may not miss what others have seen already.
func (p *Pulse) Look(tip func() (string, error)) {
	if now, err := tip(); err == nil { // what cannot be read now can be at the next look
		p.note(now)
	}
}

func (p *Pulse) note(tip string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if tip == p.tip {
		return
	}
	p.tip = tip
	if p.next != nil {
		close(p.next)
		p.next = nil
	}
}

// At gives the tip that was seen last, and a channel that is closed when it moves.
func (p *Pulse) At() (tip string, moved <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = make(chan struct{})
	}
	return p.tip, p.next
}
