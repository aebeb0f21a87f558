package engine

import (
	"context"
	"fmt"
	"sync"

	"bagpipe/engine/ask"
	"bagpipe/engine/attempt"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/inbox"
	"bagpipe/engine/index"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/runner"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
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
	Admitted *intake.Admitted
	Ended    *index.Ended
	Note     string // in words: why work pauses, what goes on
	Grave    bool   // of a note: a person must know of it, also who asked for quiet
	Left     int    // steps known to be left to do
}

// run is one call of Run.
type run struct {
	e      *Engine
	o      RunOptions
	ctx    context.Context // of commits and claims: not ended by a signal, so that what finished is recorded
	pool   *runner.Pool
	warm   *attempt.Warmth
	queue  *queue.Named            // all that is worked on; nil: everything
	handed map[ledger.StepRef]bool // of a queue with a limit; guarded by mu
	box    *inbox.Box

	mu       sync.Mutex // guards summary, internal, mishaps, stalled, fault, note, and calls of o.Report
	summary  Summary
	internal map[itemRun]bool // stopped by an internal error in this run
	mishaps  map[string]bool  // told
	stalled  []queue.Entry    // their claims or ends met an error; given back later
	fault    error
	note     string

	inboxIdle chan bool // the intake loop says whether it has something to wait for

	upkeep chan struct{} // asks for maintenance
	since  int           // steps ended since it was asked for; guarded by mu

	settled *settings.Settings // that the inbox goes by; the intake loop's own
	late    map[string]bool    // drops that were told of as such; the intake loop's own

	left []inbox.Taken // taken and not yet items: their commits failed; the intake loop's own
}

// Run takes in the inbox and works until nothing is ready, or, watching, until
// drained. It first resumes what a dead engine left.
func (e *Engine) Run(ctx context.Context, o RunOptions) (Summary, error) {
	if e.Ledger.ReadOnly { // it would stay so, also when there is room again
		return Summary{}, gitstore.ErrReadOnly
	}
	box, err := e.Intake.Box(o.Watch)
	if err != nil {
		return Summary{}, err
	}
	if err := e.Ledger.CheckBatch(o.Batch); err != nil {
		return Summary{}, err
	}
	if _, err := e.Ledger.Seat.Engine(); err != nil {
		return Summary{}, err
	}
	if err := e.Index.Begin(ctx); err != nil {
		return Summary{}, err
	}
	r := e.newRun(ctx, box, o)
	r.each(e.Guard.LookAtFew(ctx))
	for it := range e.Index.Loaded().With(queue.Ending) {
		e.Index.NoteEnds(e.Index.Loaded(), it)
	}
	e.Guard.Wake() // for the others, beside the work
	r.each(e.repairFolders(ctx))
	e.Index.TellEnded(func(ended index.Ended) {
		e.Intake.Announce.Step(ended.Item, func() { r.report(Report{Ended: &ended}) })
	})
	defer e.Index.TellEnded(nil)
	e.Control.Watch(r.pool.Drain)
	defer e.Control.Watch(nil)
	e.pool.Store(r.pool)
	defer e.pool.Store(nil)
	r.each(e.Control.CheckThresholds(ctx))
	if err := r.resume(ctx); err != nil {
		return r.summary, err
	}
	if err := r.narrow(ctx); err != nil {
		return r.summary, err
	}
	if err = r.work(ctx); err == nil {
		r.each(e.Guard.LookAtAll(r.ctx, func() bool { return r.stopped(ctx) }))
	}
	r.tidy(ctx)
	e.Index.SaveIndexSoon()
	r.conclude()
	r.lastAlarm(ctx)
	r.each(e.Ledger.Store.CaughtUp(r.ctx))
	return r.summary, r.ending()
}

func (e *Engine) newRun(ctx context.Context, box *inbox.Box, o RunOptions) *run {
	return &run{e: e, o: o, ctx: context.WithoutCancel(ctx), pool: runner.New(o.Jobs, e.Ledger.Clock), box: box,
		inboxIdle: make(chan bool, 1), upkeep: make(chan struct{}, 1), internal: map[itemRun]bool{}, mishaps: map[string]bool{},
		summary: Summary{Steps: map[state.Status]int{state.Completed: 0, state.Skipped: 0, state.Failed: 0},
			Failed: []ask.Failure{}, Growing: []string{}, Mishaps: []string{}, NotDone: []NotDone{}}}
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
	warm, cool := r.e.Attempt.NewWarmth(side, r.pool.Drained(), r.tellGrave)
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

// tell reports a note once.
func (r *run) tell(note string) { r.tellOnce(Report{Note: note}) }

// tellGrave reports once what a person must know, also who asked for quiet.
func (r *run) tellGrave(note string) { r.tellOnce(Report{Note: note, Grave: true}) }

func (r *run) tellOnce(rep Report) {
	r.mu.Lock()
	again := r.note == rep.Note
	r.note = rep.Note
	r.mu.Unlock()
	if !again {
		r.report(rep)
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
		rep.Left = r.e.Index.Loaded().Open()
		r.o.Report(rep)
	}
}

func (r *run) admitted(a intake.Admitted) {
	r.mu.Lock()
	if a.Rejected != "" {
		r.summary.Rejected++
	} else {
		r.summary.Admitted++
	}
	r.mu.Unlock()
	r.report(Report{Admitted: &a})
	if a.Stays != "" {
		r.report(Report{Note: fmt.Sprintf("%s/%s was copied; its original stays at %s: bagpipe status says why", a.Collection, a.Label, a.Stays)})
	}
}
