package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/inbox"
	"bagpipe/engine/queue"
	"bagpipe/engine/runner"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

const ms = time.Millisecond

const (
	pollEvery    = 200 * time.Millisecond // for what other writers did to the branch
	beatEvery    = 10 * time.Second
	recoverEvery = 2 * time.Second
	settleEvery  = 6 * time.Second // for settings edited in place

	// waitForRetry is how long a run that is not watching waits for a step that
	// is to be tried again; what is due later is left for the next run.
	waitForRetry = 15 * time.Second
)

// RunOptions say how to run.
type RunOptions struct {
	Jobs  int
	Watch bool
	// Items, when there are any, are all that is worked on, at Step alone if it is
	// given (STEP or WORKFLOW/STEP); the inbox is left alone.
	Items []layout.ItemID
	Step  string
	// Queue, when given, is all that is worked on: a named queue, WORKFLOW,
	// WORKFLOW/STEP or /STEP; the inbox is left alone. Not with Items.
	Queue string
	// Batch is what is taken in from the inbox belongs to; it is closed when the
	// inbox has been taken in. Not with Watch.
	Batch layout.Name
	// RetryFailed lets failed steps be tried again, once, at the start.
	RetryFailed bool
	// Drain, when closed, lets what runs finish and starts nothing new. The
	// context given to Run ends what runs as well.
	Drain <-chan struct{}
	// Report is told what happens, from one goroutine at a time; nil: not told.
	Report func(Report)
}

// Report is one thing that happened in a run.
type Report struct {
	Admitted *Admitted
	Ended    *Ended
	Note     string // in words: why work pauses, what goes on
	Left     int    // steps known to be left to do
}

// Ended is a step that this run ended.
type Ended struct {
	Item     layout.ItemID
	Label    string
	Workflow string
	Step     layout.Name
	Status   state.Status
	Message  string
}

// run is one call of Run.
type run struct {
	e      *Engine
	o      RunOptions
	ctx    context.Context // of commits and claims: not ended by a signal, so that what finished is recorded
	pool   *runner.Pool
	warm   *warmth
	queue  *queue.Named     // all that is worked on; nil: everything
	handed map[StepRef]bool // of a queue with a limit; guarded by mu
	box    *inbox.Box

	mu       sync.Mutex // guards summary, internal, fault, note, and calls of o.Report
	summary  Summary
	internal map[itemRun]bool // stopped by an internal error in this run
	fault    error
	note     string

	inboxIdle chan bool // the intake loop says whether it has something to wait for

	upkeep chan struct{} // asks for maintenance
	since  int           // steps ended since it was asked for; guarded by mu

	aside error // what the intake holds and cannot be understood; the rest goes on

	settled *Settings       // that the inbox goes by; the intake loop's own
	late    map[string]bool // drops that were told of as such; the intake loop's own

	left []inbox.Taken // taken and not yet items: their commits failed; the intake loop's own
}

// Run takes in the inbox and works until nothing is ready, or, watching, until
// drained. It first resumes what a dead engine left.
func (e *Engine) Run(ctx context.Context, o RunOptions) (Summary, error) {
	if e.o.ReadOnly { // it would stay so, also when there is room again
		return Summary{}, gitstore.ErrReadOnly
	}
	box, err := e.box(o.Watch)
	if err != nil {
		return Summary{}, err
	}
	if err := e.checkBatch(o.Batch); err != nil {
		return Summary{}, err
	}
	if _, err := e.register(); err != nil {
		return Summary{}, err
	}
	if err := e.load(ctx, nil); err != nil { // what a push removed is brought back next
		return Summary{}, err
	}
	if err := e.lookAtFew(ctx); err != nil {
		return Summary{}, err
	}
	for it := range e.index.With(queue.Ending) {
		e.noteEnds(e.index, it)
	}
	e.arrivals.wake() // for the others, beside the work
	if err := e.repairFolders(ctx); err != nil {
		return Summary{}, err
	}
	r := &run{e: e, o: o, ctx: context.WithoutCancel(ctx), pool: runner.New(o.Jobs, e.clock), box: box,
		inboxIdle: make(chan bool, 1), upkeep: make(chan struct{}, 1), internal: map[itemRun]bool{}, summary: Summary{Steps: map[state.Status]int{state.Completed: 0, state.Skipped: 0, state.Failed: 0}, Failed: []Failure{}, Growing: []string{}, NotDone: []NotDone{}}}
	e.tell(func(ended Ended) { r.report(Report{Ended: &ended}) })
	defer e.tell(nil)
	e.controls.watch(r.pool.Drain)
	defer e.controls.watch(nil)
	e.pool.Store(r.pool)
	defer e.pool.Store(nil)
	if err := e.checkThresholds(ctx); err != nil {
		return r.summary, err
	}
	if err := r.resume(ctx); err != nil {
		return r.summary, err
	}
	if err := r.narrow(ctx); err != nil {
		return r.summary, err
	}
	err = r.work(ctx)
	if err == nil {
		err = e.lookAtAll(r.ctx, func() bool { return r.stopped(ctx) })
	}
	r.tidy(ctx)
	e.saveIndexSoon()
	r.conclude()
	r.lastAlarm(ctx)
	return r.summary, errors.Join(err, r.aside, e.store.CaughtUp(r.ctx))
}

// tell sets who is told of ended steps.
func (e *Engine) tell(f func(Ended)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = f
}

// work runs until there is nothing to do, the run is drained, or something is
// broken that a person must mend.
func (r *run) work(ctx context.Context) error {
	side, stopSide := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { r.tend(side) })
	wg.Go(func() { r.maintain(side) })
	wg.Go(func() { r.guard(side) })
	wg.Go(func() { r.alarm(side) })
	if !r.injected() {
		wg.Go(func() { r.intake(side) })
	}
	stopped := context.AfterFunc(ctx, r.pool.Stop)
	wg.Go(func() {
		select {
		case <-r.o.Drain:
			r.pool.Drain()
		case <-side.Done():
		}
	})
	warm, cool := r.newWarmth(side)
	r.warm = warm
	r.dispatch(ctx)
	r.pool.Drain()
	r.pool.Wait()
	cool()
	stopped()
	stopSide()
	wg.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault
}

// dispatch hands ready steps to the pool.
func (r *run) dispatch(ctx context.Context) {
	inboxIdle, limitedSince := r.injected(), time.Time{}
	for !r.pool.Draining() && ctx.Err() == nil {
		busy := r.pool.Busy() > 0 // asked before Take, as finishing makes steps ready
		if why := r.e.lowSpace(); why != nil {
			if !r.pauseFor(ctx, why, busy) {
				return
			}
			continue
		}
		now := r.e.o.Now()
		entry, ok, limited := r.e.index.Take(now, r.may)
		if ok {
			r.hand(entry)
			r.launch(entry)
			limitedSince = time.Time{}
			continue
		}
		due, dated := r.warm.due(r.e.index.NextDue())
		busy = busy || r.warm.open()
		if limited && !busy { // by what other engines do
			if limitedSince.IsZero() {
				limitedSince = now
			}
			if until := limitedSince.Add(waitForRetry); !now.After(until) && (!dated || until.Before(due)) {
				due, dated = now.Add(time.Second), true
			}
		}
		pause := due.Sub(now)
		if (!r.o.Watch || r.spent()) && inboxIdle && !busy && (!dated || pause > waitForRetry) {
			return
		}
		if !dated {
			pause = time.Minute
		}
		timer := time.NewTimer(max(pause, ms))
		select {
		case <-r.e.index.Wake():
		case <-r.pool.Freed():
		case inboxIdle = <-r.inboxIdle:
		case <-timer.C:
		case <-r.o.Drain:
			r.pool.Drain()
		case <-r.pool.Drained():
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// may tells whether one more of a step may be claimed by this process.
func (r *run) may(id queue.StepID, s *state.Step) bool {
	return r.pool.May(id.String(), s.Instances) && r.warm.ready(id, s)
}

// pauseFor waits for free space; a run that is not watching ends instead, once
// nothing runs any more that might free some.
func (r *run) pauseFor(ctx context.Context, why error, busy bool) bool {
	if !r.o.Watch && !busy {
		r.broken(why)
		return false
	}
	r.tell(why.Error())
	select {
	case <-time.After(time.Second):
	case <-r.pool.Freed():
	case <-r.pool.Drained():
	case <-ctx.Done():
	}
	return true
}

func (r *run) launch(entry queue.Entry) {
	w := &work{e: r.e, ctx: r.ctx, entry: entry, patient: r.o.Watch, stopping: r.pool.Draining}
	w.done = func(w *work) { r.ended(w) }
	r.pool.Go(runner.Work{Step: entry.ID().String(), Instances: w.planStep().Instances, Claim: w.claim, Timeout: w.timeout, Run: w.run, Finish: w.finish})
}

// ended notes how a piece of work went, and lets its step be taken again.
func (r *run) ended(w *work) {
	if w.err != nil {
		r.broken(fmt.Errorf("%s of item %s: %w", w.entry.Step, w.entry.Item.ID.Short(), w.err))
	}
	if w.internal {
		r.mu.Lock()
		r.internal[itemRun{w.entry.Item.ID, w.entry.Run}] = true
		r.mu.Unlock()
	}
	r.e.index.Return(w.entry)
}

// broken notes an error of the machine. A run that is not watching ends with it;
// one that is goes on, as the cause (a full disk) may pass, unless going on could
// do harm.
func (r *run) broken(err error) {
	if r.o.Watch && !mustStop(err) {
		r.tell(err.Error())
		return
	}
	r.mu.Lock()
	if r.fault == nil {
		r.fault = err
	}
	r.mu.Unlock()
	r.pool.Drain()
}

// mustStop tells the errors after which this engine may not act any more: the
// branch was rewritten, or others take the engine for dead.
func mustStop(err error) bool {
	var diverged *gitstore.DivergedError
	return errors.As(err, &diverged) || errors.Is(err, claim.ErrLost)
}

// tell reports a note once.
func (r *run) tell(note string) {
	r.mu.Lock()
	again := r.note == note
	r.note = note
	r.mu.Unlock()
	if !again {
		r.report(Report{Note: note})
	}
}

func (r *run) report(rep Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rep.Ended != nil {
		r.summary.Steps[rep.Ended.Status]++
		r.due()
	}
	if r.o.Report != nil {
		rep.Left = r.e.index.Open()
		r.o.Report(rep)
	}
}

func (r *run) admitted(a Admitted) {
	r.mu.Lock()
	if a.Rejected != "" {
		r.summary.Rejected++
	} else {
		r.summary.Admitted++
	}
	r.mu.Unlock()
	r.report(Report{Admitted: &a})
}

// tend does what has to be done now and then: see what others committed, show
// that this engine lives, take up the work of dead ones, take in settings.
func (r *run) tend(ctx context.Context) {
	e := r.e
	saved := e.o.Now()
	every := func(d time.Duration) *time.Ticker { return time.NewTicker(d) }
	poll, beat, recover, settings := every(pollEvery), every(beatEvery), every(recoverEvery), every(settleEvery)
	defer func() { poll.Stop(); beat.Stop(); recover.Stop(); settings.Stop() }()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			err = e.store.Refresh(ctx)
		case <-beat.C:
			err = e.beat()
		case <-recover.C:
			e.saveChecked()
			if now := e.o.Now(); now.Sub(saved) > checkpointEvery {
				saved = now
				e.saveIndexSoon()
			}
			err = errors.Join(e.recoverLost(ctx), e.checkThresholds(ctx))
			e.offerTrials()
		case <-settings.C:
			err = e.syncSettings(ctx)
		case <-e.dirty:
			err = e.syncSettings(ctx)
		}
		if err != nil && ctx.Err() == nil {
			r.broken(err)
		}
	}
}

func (e *Engine) beat() error {
	self, err := e.register()
	if err != nil {
		return err
	}
	return self.Beat()
}

// checkAlive answers claim.ErrLost when others take this engine for dead: they may
// have taken its scratch away, and a step that fails for it must not fail the item.
func (e *Engine) checkAlive() error {
	self, err := e.register()
	if err != nil {
		return err
	}
	if err := self.Check(); errors.Is(err, claim.ErrLost) {
		return err
	}
	return nil
}

// backoff is the pause after the failures-th failure in a row of a step.
func (e *Engine) backoff(s *state.Step, failures int) time.Duration {
	b := e.current().settings.backoff()
	if own := s.Backoff; own != nil && own.First > 0 {
		b.First = time.Duration(own.First)
		b.Most = max(b.Most, b.First)
	}
	if own := s.Backoff; own != nil && own.Most > 0 {
		b.Most = time.Duration(own.Most)
	}
	return b.Wait(failures, rand.Float64())
}
