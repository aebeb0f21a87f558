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
	Step      string // of which workflow and step it is: what Instances counts
	Instances int    // of Step that may run at once; 0: as many as there are slots
	Claim     func(ctx context.Context) bool
	Timeout   func() time.Duration // asked after Claim; 0: none
	Run       func(ctx context.Context)
	Finish    func()
}

// Pool runs work in a fixed number of slots.
type Pool struct {
	slots     chan struct{} // running
	finishing chan struct{}
	ctx       context.Context
	cancel    context.CancelCauseFunc
	drain     chan struct{}
	draining  sync.Once
	freed     chan struct{}
	wg        sync.WaitGroup

	mu    sync.Mutex               // guards the rest
	ahead map[string]int           // by step: claimed, or being claimed, and not running yet
	steps map[string]chan struct{} // by step: its instances that run
	busy  int
}

// One step may be claimed ahead for each instance that may run it. Many more may
// be finishing: they wait for the disk, and the more of them there are the more
// commits share a sync.
const finishingEach = 16

// New makes a pool of n slots; n below 1 is 1.
func New(n int) *Pool {
	n = max(n, 1)
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Pool{
		slots: make(chan struct{}, n), finishing: make(chan struct{}, finishingEach*n),
		ctx: ctx, cancel: cancel, drain: make(chan struct{}), freed: make(chan struct{}, 1),
		ahead: map[string]int{}, steps: map[string]chan struct{}{},
	}
}

func (p *Pool) instances(n int) int {
	if n <= 0 {
		return cap(p.slots)
	}
	return min(n, cap(p.slots))
}

// May tells whether one more piece of work of a step may be claimed now: one ahead
// for each of its instances.
func (p *Pool) May(step string, instances int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ahead[step] < p.instances(instances)
}

func (p *Pool) signal() {
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// Freed receives after a step began to run, or ended; several times may make one.
func (p *Pool) Freed() <-chan struct{} { return p.freed }

// Go starts a piece of work that May allowed.
func (p *Pool) Go(w Work) {
	p.count(w.Step, 1, 1)
	p.wg.Go(func() {
		defer p.count("", 0, -1)
		if w.Claim != nil && !w.Claim(p.ctx) {
			p.count(w.Step, -1, 0)
			return
		}
		p.inSlot(w)
		p.finishing <- struct{}{}
		w.Finish()
		<-p.finishing
	})
}

// count changes how many are ahead of a step, and how many are busy in all.
func (p *Pool) count(step string, ahead, busy int) {
	p.mu.Lock()
	p.busy += busy
	if ahead != 0 {
		p.ahead[step] += ahead
	}
	p.mu.Unlock()
	if ahead <= 0 {
		p.signal()
	}
}

// inSlot runs w in a slot, unless the pool is draining: then the claim is given
// back by Finish, as nothing has been run.
func (p *Pool) inSlot(w Work) {
	leave, ok := p.enter(p.running(w), p.slots)
	p.count(w.Step, -1, 0)
	if !ok {
		return
	}
	defer leave()
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

// running gives the step's own slots. A definition's newer version may have
// another number: the first one seen counts until the pool ends.
func (p *Pool) running(w Work) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.steps[w.Step]
	if s == nil {
		s = make(chan struct{}, p.instances(w.Instances))
		p.steps[w.Step] = s
	}
	return s
}

// enter takes a place in each of the channels, in their order; not when the pool
// drains first.
func (p *Pool) enter(places ...chan struct{}) (leave func(), ok bool) {
	taken := 0
	leave = func() {
		for _, s := range places[:taken] {
			<-s
		}
	}
	for _, s := range places {
		if p.Draining() {
			leave()
			return nil, false
		}
		select {
		case s <- struct{}{}:
			taken++
		case <-p.drain:
			leave()
			return nil, false
		}
	}
	return leave, true
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
func (p *Pool) Busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy
}

// Drain starts nothing new; it does not wait. It may be called more than once.
func (p *Pool) Drain() { p.draining.Do(func() { close(p.drain) }) }

// Stop drains and ends what is running. It may be called more than once.
func (p *Pool) Stop() {
	p.Drain()
	p.cancel(ErrInterrupted)
}

// Wait returns when nothing runs any more. Nothing may be started meanwhile but
// by work that is already in the pool.
func (p *Pool) Wait() {
	p.wg.Wait()
	if p.Draining() {
		p.cancel(ErrInterrupted)
	}
}
