package runner

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrInterrupted is the cause with which the owner of a pool ends the context of running
// steps.
var ErrInterrupted = errors.New("interrupted; it is resumed at the next start")

// TimeoutError is the cause of the context of a step that took too long.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string { return "timed out after " + e.After.String() }

// Work is one step to be done. Claim is called first, outside the pool's slots,
// so that the next claim's commit overlaps with running steps; when it answers
// false the work is over. Run is called in a slot. Finish is called after it,
// outside the slots again, whatever Run did.
type Work struct {
	Step      string        // names the workflow and the step that Instances bounds
	Instances int           // of Step that may run at once; 0: as many as there are slots
	Prefetch  int           // of Step that may be claimed ahead for each instance, where it takes long
	Timeout   time.Duration // of Run; 0: none
	Within    time.Duration // of its claim it is to be run, else it is given back; 0: it waits for its turn
	Claim     func() bool
	Run       func(ctx context.Context, aside Aside)
	Finish    func()
	Next      func() *Work  // after Finish, what the pool goes on with, which Follow let in and which is claimed; nil: nothing
	Claimed   time.Duration // how long the claim of what Next gave took
}

// Aside calls wait while others run in the caller's place, and answers as wait does once
// the caller has a place again: a robot that waits for the disk does no work. Where ctx ends
// first it answers with its cause, too, and the caller has no place: it is to end.
type Aside func(ctx context.Context, wait func() error) error

// Pool runs work in a fixed number of slots.
type Pool struct {
	slots     chan struct{} // running
	finishing chan struct{}
	drain     chan struct{}
	draining  sync.Once
	freed     chan struct{}
	wg        sync.WaitGroup

	now   func() time.Time
	mu    sync.Mutex // guards the rest
	steps map[string]*stepRoom
	busy  int
	ahead int           // of all steps
	runs  time.Duration // about how long a step runs, of whichever
	late  bool          // what was claimed ahead was given back, and no short step ended since

	stock atomic.Int32 // the sum of what stands in line, of each step no more than may run at once
}

// stepRoom is what the pool knows of one step.
type stepRoom struct {
	ahead   int           // claimed, or being claimed, and not running yet
	inLine  int           // claimed, and waiting for a place to run
	running seats         // a place for each of its instances
	claims  time.Duration // about how long a claim takes
	runs    time.Duration // about how long it runs
}

// Nothing is claimed that would not be run soon, but for what a step's prefetch says: another
// engine may be free sooner. So where a step takes much longer than a claim, or longer than
// soon, an instance and a slot must be free. Else one is claimed ahead for each instance, so
// that the next claim becomes durable while the step before runs. Where a step takes less time
// than a claim, one would leave the worker waiting for a sync: then as many as run
// in the time a claim takes, up to mostAhead. Many more may be finishing: they wait
// for the disk, and the more of them there are the more commits share a sync. That is
// why there are twice as many: while one half runs, the other's claims are gathered.
const (
	longRuns      = 10 // times a claim: waiting for the claim costs less than a tenth
	soon          = 500 * time.Millisecond
	mostAhead     = 32
	finishingEach = 64
	busyEach      = 128 // pieces of work at once, in whatever state, for each slot
)

// New makes a pool of n slots; n below 1 is 1. now is the clock that tells how long
// claims and runs take.
func New(n int, now func() time.Time) *Pool {
	n = max(n, 1)
	return &Pool{
		slots: make(chan struct{}, n), finishing: make(chan struct{}, finishingEach*n),
		drain: make(chan struct{}), freed: make(chan struct{}, 1),
		steps: map[string]*stepRoom{}, now: now,
	}
}

func (p *Pool) instances(n int) int {
	if n <= 0 {
		return cap(p.slots)
	}
	return min(n, cap(p.slots))
}

// room gives what is known of a step; p.mu is held. The number of instances may have
// changed since: the newest counts, and what runs beyond it ends in its own time.
func (p *Pool) room(step string, instances int) *stepRoom {
	r := p.steps[step]
	if r == nil {
		r = &stepRoom{}
		p.steps[step] = r
	}
	if n := p.instances(instances); n != r.running.n {
		before := min(r.inLine, r.running.n)
		r.running.resize(n)
		p.stock.Add(int32(min(r.inLine, n) - before))
	}
	return r
}

// May tells whether one more piece of work of a step may be claimed now. prefetch is
// that of Work.
func (p *Pool) May(step string, instances, prefetch int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.room(step, instances)
	return p.busy < busyEach*cap(p.slots) && p.mayFollow(r, prefetch)
}

// turnSoon reports whether one more piece of work that is claimed would be run soon; p.mu is
// held.
func (p *Pool) turnSoon() bool {
	before := p.ahead + 1 - (cap(p.slots) - len(p.slots))
	return before <= 0 || !p.late && p.runs > 0 && p.runs*time.Duration(before)/time.Duration(cap(p.slots)) < soon
}

// mayAhead is how many pieces of work may be claimed and not run yet.
func (r *stepRoom) mayAhead(prefetch int) int {
	switch n := r.running.n; {
	case r.runs == 0 || r.claims == 0 || r.runs >= min(longRuns*r.claims, soon):
		return max(0, n-r.running.taken) + n*prefetch
	case r.runs >= r.claims:
		return n * max(1, prefetch)
	default:
		return n * max(prefetch, int(min(mostAhead, 2*r.claims/max(r.runs, 1)+1)))
	}
}

// learn takes a measurement into an average.
func learn(average *time.Duration, took time.Duration) {
	if *average == 0 {
		*average = max(took, 1)
		return
	}
	*average = max((7**average+took)/8, 1)
}

func (p *Pool) signal() {
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// Freed receives after a step began to run, or ended; several times may make one.
func (p *Pool) Freed() <-chan struct{} { return p.freed }

// Go starts a piece of work that May allowed. The owner ends ctx, with ErrInterrupted as
// the cause, to end Run.
func (p *Pool) Go(ctx context.Context, w Work) {
	r := p.begin(w)
	p.wg.Go(func() {
		defer p.change(func() { p.busy-- })
		if !p.claim(w, r) {
			p.change(func() { r.ahead--; p.ahead-- })
			return
		}
		for next := &w; next != nil; {
			w = *next
			p.inSlot(ctx, w, r)
			p.finishing <- struct{}{}
			w.Finish()
			<-p.finishing
			if next = nil; w.Next != nil {
				next = w.Next()
			}
			if next != nil {
				r = p.followed(next)
			}
		}
	})
}

// Follow is May for a piece of work that takes the place of one that is about to end, and
// lets it in: its owner gives it to Next, or calls Forgo.
func (p *Pool) Follow(step string, instances, prefetch int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.room(step, instances)
	may := !p.Draining() && p.mayFollow(r, prefetch)
	if may {
		r.ahead++
		p.ahead++
	}
	return may
}

// MayFollow tells whether Follow would let a piece of work in.
func (p *Pool) MayFollow(step string, instances, prefetch int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mayFollow(p.room(step, instances), prefetch)
}

func (p *Pool) mayFollow(r *stepRoom, prefetch int) bool {
	return r.ahead < r.mayAhead(prefetch) && (prefetch > 0 || p.turnSoon())
}

// Forgo ends a Follow of which nothing came.
func (p *Pool) Forgo(step string) { p.change(func() { p.steps[step].ahead--; p.ahead-- }) }

// followed takes in how long the claim of a piece of work took that Follow let in.
func (p *Pool) followed(w *Work) *stepRoom {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.room(w.Step, w.Instances)
	learn(&r.claims, w.Claimed)
	return r
}

func (p *Pool) begin(w Work) *stepRoom {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.room(w.Step, w.Instances)
	r.ahead++
	p.ahead++
	p.busy++
	return r
}

// change lets f change what mu guards, and tells that there may be room.
func (p *Pool) change(f func()) {
	p.mu.Lock()
	f()
	p.mu.Unlock()
	p.signal()
}

func (p *Pool) claim(w Work, r *stepRoom) bool {
	if w.Claim == nil {
		return true
	}
	begin := p.now()
	ok := w.Claim()
	took := p.now().Sub(begin)
	p.mu.Lock()
	defer p.mu.Unlock()
	learn(&r.claims, took)
	return ok
}

// inSlot runs w in a slot, unless the pool is draining, or its turn does not come in
// time: then the claim is given back by Finish, as nothing has been run.
func (p *Pool) inSlot(ctx context.Context, w Work, r *stepRoom) {
	p.mu.Lock()
	p.line(r, 1)
	p.mu.Unlock()
	ok := p.enter(r, w.Within)
	p.change(func() { r.ahead--; p.ahead--; p.line(r, -1); p.late = p.late || !ok })
	if !ok {
		return
	}
	at := &place{p, r, true}
	defer at.leave()
	if t := w.Timeout; t > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, t, &TimeoutError{After: t})
		defer cancel()
		ctx = limited
	}
	begin := p.now()
	var waited time.Duration
	w.Run(ctx, func(ctx context.Context, wait func() error) error {
		since := p.now()
		defer func() { waited += p.now().Sub(since) }()
		return at.aside(ctx, wait)
	})
	took := p.now().Sub(begin) - waited
	p.mu.Lock()
	defer p.mu.Unlock()
	learn(&r.runs, took)
	learn(&p.runs, took)
	p.late = p.late && took > soon
}

// enter takes a place of the step, then a slot; not when the pool drains first, or within
// is over.
func (p *Pool) enter(r *stepRoom, within time.Duration) (ok bool) {
	var over <-chan time.Time
	if within > 0 {
		over = time.After(within)
	}
	if p.Draining() || !p.sit(r, p.drain, over) {
		return false
	}
	select {
	case p.slots <- struct{}{}:
		if !p.Draining() {
			return true
		}
		<-p.slots
	case <-p.drain:
	case <-over:
	}
	p.leave(r)
	return false
}

// sit waits for a place of the step; false when give is closed, or over comes, first. nil
// never does.
func (p *Pool) sit(r *stepRoom, give <-chan struct{}, over <-chan time.Time) bool {
	p.mu.Lock()
	seat := r.running.ask()
	p.mu.Unlock()
	select {
	case <-seat:
		return true
	case <-give:
	case <-over:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.running.giveUp(seat)
	return false
}

func (p *Pool) leave(r *stepRoom) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.running.leave()
}

// Stocked tells that all slots are taken and for each of them another piece of work
// waits, claimed.
func (p *Pool) Stocked() bool {
	return int(p.stock.Load()) >= cap(p.slots) && !p.Draining()
}

// line counts n more pieces of work of a step in line; p.mu is held.
func (p *Pool) line(r *stepRoom, n int) {
	before := min(r.inLine, r.running.n)
	r.inLine += n
	p.stock.Add(int32(min(r.inLine, r.running.n) - before))
}

// Draining reports whether Drain was called.
func (p *Pool) Draining() bool {
	select {
	case <-p.drain:
		return true
	default:
		return false
	}
}

// Drained is closed when Drain is called.
func (p *Pool) Drained() <-chan struct{} { return p.drain }

// Busy is the number of pieces of work claimed, running or finishing.
func (p *Pool) Busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy
}

// Drain starts nothing new; it does not wait. It may be called more than once.
func (p *Pool) Drain() { p.draining.Do(func() { close(p.drain) }) }

// Wait returns when nothing runs any more. Only work that is in the pool may start more
// meanwhile.
func (p *Pool) Wait() { p.wg.Wait() }
