package runner

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrInterrupted is the cause of the context of a step that Stop ended.
var ErrInterrupted = errors.New("interrupted; it is resumed at the next start")

// TimeoutError is the cause of the context of a step that took too long.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string { return "timed out after " + e.After.String() }

// Work is one step to be done. Claim is called first, outside the pool's slots,
// so that the next claim's commit overlaps with running steps; when it answers
// false the work is over. Run is called in a slot. Finish is called after it,
// outside the slots again, whatever Run did.
type Work struct {
	Claim   func(ctx context.Context) bool
	Timeout func() time.Duration // asked after Claim; 0: none
	Run     func(ctx context.Context)
	Finish  func()
}

// Pool runs work in a fixed number of slots.
type Pool struct {
	slots     chan struct{} // running
	admit     chan struct{} // claimed or running
	finishing chan struct{}
	ctx       context.Context
	cancel    context.CancelCauseFunc
	drain     chan struct{}
	draining  sync.Once
	freed     chan struct{}
	wg        sync.WaitGroup
}

// One step may be claimed ahead for each that runs. Many more may be finishing:
// they wait for the disk, and the more of them there are the more commits share
// a sync.
const (
	claimedAhead  = 2
	finishingEach = 16
)

// New makes a pool of n slots; n below 1 is 1.
func New(n int) *Pool {
	n = max(n, 1)
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Pool{
		slots: make(chan struct{}, n), admit: make(chan struct{}, claimedAhead*n),
		finishing: make(chan struct{}, finishingEach*n),
		ctx:       ctx, cancel: cancel, drain: make(chan struct{}), freed: make(chan struct{}, 1),
	}
}

// Admit waits for room for one more piece of work; false when the pool drains or
// ctx ends. Each true answer must be followed by Go or Forgo.
func (p *Pool) Admit(ctx context.Context) bool {
	select {
	case <-p.drain:
		return false
	default:
	}
	select {
	case p.admit <- struct{}{}:
		return true
	case <-p.drain:
	case <-ctx.Done():
	}
	return false
}

// Forgo gives back the room Admit promised.
func (p *Pool) Forgo() {
	<-p.admit
	p.signal()
}

func (p *Pool) signal() {
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// Freed receives after room was given back or work ended; several times may make
// one.
func (p *Pool) Freed() <-chan struct{} { return p.freed }

// Go starts a piece of work that was admitted.
func (p *Pool) Go(w Work) {
	p.wg.Go(func() {
		if w.Claim != nil && !w.Claim(p.ctx) {
			p.Forgo()
			return
		}
		p.inSlot(w)
		p.finishing <- struct{}{} // before Forgo, so that Busy never misses it
		p.Forgo()
		w.Finish()
		<-p.finishing
		p.signal()
	})
}

// inSlot runs w in a slot, unless the pool is draining: then the claim is given
// back by Finish, as nothing has been run.
func (p *Pool) inSlot(w Work) {
	if p.Draining() {
		return
	}
	select {
	case p.slots <- struct{}{}:
	case <-p.drain:
		return
	}
	defer func() { <-p.slots }()
	ctx := p.ctx
	if w.Timeout != nil {
		if t := w.Timeout(); t > 0 {
			limited, cancel := context.WithTimeoutCause(ctx, t, &TimeoutError{After: t})
			defer cancel()
			ctx = limited
		}
	}
	w.Run(ctx)
}

// Draining tells whether Drain or Stop was called.
func (p *Pool) Draining() bool {
	select {
	case <-p.drain:
		return true
	default:
		return false
	}
}

// Drained is closed when Drain or Stop is called.
func (p *Pool) Drained() <-chan struct{} { return p.drain }

// Busy is the number of pieces of work claimed, running or finishing.
func (p *Pool) Busy() int { return len(p.admit) + len(p.finishing) }

// Drain starts nothing new; it does not wait. It may be called more than once.
func (p *Pool) Drain() { p.draining.Do(func() { close(p.drain) }) }

// Stop drains and ends what is running. It may be called more than once.
func (p *Pool) Stop() {
	p.Drain()
	p.cancel(ErrInterrupted)
}

// Wait returns when nothing runs any more. Nothing may be admitted meanwhile but
// by work that is already in the pool.
func (p *Pool) Wait() {
	p.wg.Wait()
	if p.Draining() {
		p.cancel(ErrInterrupted)
	}
}
