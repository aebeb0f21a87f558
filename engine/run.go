package engine

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bagpipe/engine/act"
	"bagpipe/engine/ask"
	"bagpipe/engine/attempt"
	"bagpipe/engine/delivery"
	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/guard"
	"bagpipe/engine/index"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/metrics"
	"bagpipe/engine/queue"
	"bagpipe/engine/remote"
	"bagpipe/engine/runner"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// RunOptions say how to run.
type RunOptions struct {
	// Parallel is how many steps are done at once.
	Parallel int
	Watch    bool
	// Items, when there are any, are all that is worked on, at Step alone if it is
	// given (STEP or WORKFLOW/STEP); the inbox is left alone.
	Items []layout.ItemID
	Step  string
	// Queue, when given, is all that is worked on: a named queue, WORKFLOW,
	// WORKFLOW/STEP or /STEP; the inbox is left alone. Not with Items.
	Queue string
	// Batch names the batch that this run's drops become part of; it is closed when the
	// inbox has been taken in. Not with Watch.
	Batch layout.Name
	By    ledger.Actor // closes Batch; zero: the person whom the ledger names
	// RetryFailed lets failed steps be tried again, once, at the start.
	RetryFailed bool
	// Drain, when closed, lets what runs finish and starts nothing new. The
	// context given to Run ends what runs as well.
	Drain <-chan struct{}
	// Metrics, when given, answers /metrics and /healthz while the run lasts.
	Metrics net.Listener
	// Counts, when given, counts what this run does; nil: the run makes its own for Metrics
	// and Beat.
	Counts *metrics.Metrics
	// Beat, when given, is called every BeatEvery while the run does not hang.
	Beat      func()
	BeatEvery time.Duration
	// Workers, when given, do the steps that the settings place on other machines. With Watch.
	Workers *remote.Remote
	// Report is told what happens, from one goroutine at a time; nil: not told.
	Report func(Report)
}

// Report is one thing that happened in a run.
type Report struct {
	Admitted *intake.Admitted
	Ended    *index.Ended
	Note     string         // in words: why work pauses, what goes on
	Remedies []fault.Remedy // of a note
	Grave    bool           // of a note: a person must know of it, also who asked for quiet
	Summed   bool           // of a note: the summary of a run that ends by itself says it, too
	Left     int            // steps known to be left to do
}

// run is one call of Run.
type run struct {
	*account
	*selection
	e      *Engine
	o      RunOptions
	pool   *runner.Pool
	warm   *attempt.WarmUps
	inbox  *inboxLoop
	upkeep *upkeep
	stalls stalls

	undelivered atomic.Int64              // deliveries that did not go
	deferring   atomic.Pointer[time.Time] // since when no step ended but by asking for a later call; nil: one did
}

// Run takes in the inbox and works until nothing is ready, or, watching, until
// drained. It first resumes what a dead engine left.
func (e *Engine) Run(ctx context.Context, o RunOptions) (Summary, error) {
	r, err := e.newRun(ctx, o)
	if err != nil {
		return Summary{}, err
	}
	e.takeStanding(ctx, r.tellGrave)
	r.each(e.Guard.LookAtFew(ctx))
	for it := range e.Index.Loaded().With(queue.Ending) {
		e.Index.NoteEnds(e.Index.Loaded(), it)
	}
	e.Guard.Wake() // for the others, beside the work
	r.each(e.repairFolders(ctx))
	defer r.listen()()
	if !o.Watch && !r.injected() {
		r.readers().once(ctx)
	}
	r.each(e.Control.CheckThresholds(ctx))
	if err := r.resume(ctx); err != nil {
		return r.summary, err
	}
	if err := r.narrow(ctx); err != nil {
		return r.summary, err
	}
	if err = r.work(ctx); err == nil {
		r.each(e.Guard.LookAtAll(context.WithoutCancel(ctx), func() bool { return r.stopped(ctx) }))
	}
	if !r.o.Watch && !r.injected() && !r.stopped(ctx) {
		r.deliverOnce(ctx, 0)
	}
	r.upkeep.last(ctx)
	e.Index.SaveIndexSoon()
	r.conclude(ctx)
	r.lastAlarm(ctx)
	e.lastSync(ctx, r.tellGrave)
	r.each(e.Ledger.Store.CaughtUp(context.WithoutCancel(ctx)))
	return r.summary, r.ending()
}

// newRun refuses what no run may begin with.
func (e *Engine) newRun(ctx context.Context, o RunOptions) (*run, error) {
	if e.Ledger.ReadOnly { // it would stay so, also when there is room again
		return nil, gitstore.ErrReadOnly
	}
	box, err := e.Intake.Box(o.Watch)
	if err != nil {
		return nil, err
	}
	if err := e.Ledger.CheckBatch(o.Batch); err != nil {
		return nil, err
	}
	if _, err := e.Ledger.Seat.Engine(); err != nil {
		return nil, err
	}
	if err := e.Index.Begin(ctx); err != nil {
		return nil, err
	}
	pool := runner.New(o.Parallel, e.Ledger.Clock)
	a := newAccount(o, func() int { return e.Index.Loaded().Open() }, pool.Drain)
	return &run{account: a, e: e, o: o, pool: pool,
		selection: &selection{e: e, items: o.Items, step: o.Step, which: o.Queue, retryFailed: o.RetryFailed, notify: a.tell},
		inbox:     &inboxLoop{account: a, e: e, pool: pool, batch: o.Batch, by: o.By, box: box, idle: make(chan bool, 1)},
		upkeep:    &upkeep{account: a, e: e, asked: make(chan struct{}, 1)}}, nil
}

// listen has the run told of steps that end and of thresholds that are reached, until the
// function it gives is called.
func (r *run) listen() (stop func()) {
	e := r.e
	if r.metrics = r.o.Counts; r.metrics == nil && (r.o.Metrics != nil || r.o.Beat != nil) {
		r.metrics = metrics.New(e.Ledger, e.Settings, e.Index, e.Ledger.Version)
	}
	if r.metrics != nil {
		r.metrics.Begin()
	}
	e.Index.TellEnded(func(ended index.Ended) {
		if r.metrics != nil {
			r.metrics.Ended(ended)
		}
		e.Intake.Announce.Step(ended.Item, func() {
			r.report(Report{Ended: &ended})
			r.upkeep.did(1)
		})
	})
	e.Control.Watch(r.pool.Drain)
	e.pool.Store(r.pool)
	return func() {
		e.pool.Store(nil)
		e.Control.Watch(nil)
		e.Index.TellEnded(nil)
		if r.metrics != nil {
			r.metrics.End()
		}
	}
}

// work runs until there is nothing to do, the run is drained, or something is
// broken that a person must mend.
func (r *run) work(ctx context.Context) error {
	side, stopSide := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { r.tend(side) })
	wg.Go(func() { r.upkeep.run(side) })
	wg.Go(func() { r.guard(side) })
	wg.Go(func() { r.alarm(side) })
	wg.Go(func() { r.feed(side) })
	if r.o.Beat != nil {
		wg.Go(func() { r.beat(side) })
	}
	if r.o.Metrics != nil {
		wg.Go(func() {
			if err := r.metrics.Serve(side, r.o.Metrics); err != nil {
				r.tellGrave(err.Error())
			}
		})
	}
	if !r.injected() {
		wg.Go(func() { r.inbox.run(side) })
	}
	if err := r.begin(ctx, side, &wg); err != nil {
		stopSide()
		wg.Wait()
		return err
	}
	performing, interrupt := context.WithCancelCause(context.WithoutCancel(ctx))
	defer interrupt(nil)
	if r.o.Watch && !r.injected() {
		wg.Go(func() {
			r.e.Schedule.Run(side, performing, func(said string, bad bool) { r.report(Report{Note: said, Grave: bad}) })
		})
		wg.Go(func() { r.e.keepSynced(side, r.tellGrave) })
		wg.Go(func() { r.e.keepTaking(side, r.tellGrave, r.upkeep.tookBranches) })
		wg.Go(func() { r.readers().keep(side) })
		wg.Go(func() { r.keepFixity(side) })
	}
	stopped := context.AfterFunc(ctx, func() {
		r.pool.Drain()
		interrupt(runner.ErrInterrupted)
	})
	wg.Go(func() {
		select {
		case <-r.o.Drain:
			r.pool.Drain()
		case <-side.Done():
		}
	})
	wg.Go(func() { r.boundDrain(side, interrupt) })
	r.warm = r.e.Attempt.NewWarmUps(r.o.Parallel, r.pool.Drained(), r.tellGrave)
	if r.o.Watch && !r.injected() {
		wg.Go(func() { r.deliver(side) })
	}
	r.dispatch(ctx, performing)
	r.pool.Drain()
	r.pool.Wait()
	r.warm.End()
	stopped()
	stopSide()
	wg.Wait()
	return r.ending()
}

// boundDrain ends what is at work a while after the run was to stop; its attempts are given
// back, and cost no retry.
func (r *run) boundDrain(side context.Context, interrupt context.CancelCauseFunc) {
	select {
	case <-r.pool.Drained():
	case <-side.Done():
		return
	}
	most := r.e.Settings.Current().Settings.DrainTime()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-late.C:
		r.tellGrave("what was at work " + most.String() + " after the run was to stop is ended, and waits for the next run (drain)")
		interrupt(runner.ErrInterrupted)
	case <-side.Done():
	}
}

func (r *run) readers() readings { return readings{r.account, r.e, r.o.Drain} }

// beat tells, now and then, that the run does not hang.
func (r *run) beat(ctx context.Context) {
	tick := time.NewTicker(r.o.BeatEvery)
	defer tick.Stop()
	for {
		if err := r.metrics.Alive(); err == nil {
			r.o.Beat()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// workersOnly reports whether remote workers alone do a step.
func workersOnly(r *run, run *queue.Run, i int) bool {
	step := &run.Plan.Steps[i]
	p, placed := r.e.Settings.Current().Settings.Workers.Placed(run.Plan.Name, step.Name)
	return placed && p.Only && !step.External
}

// conclude looks over the index for what is left.
func (r *run) conclude(ctx context.Context) {
	asking, err := delivery.Asked(context.WithoutCancel(ctx), r.e.Delivery)
	r.each(err)
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	now := r.e.Ledger.Now()
	r.summary.NotDone = r.notDone()
	r.summary.Undone = Undone{Cold: []string{}, Deliveries: append([]delivery.Asking{}, asking...), Undelivered: int(r.undelivered.Load()), Unsound: []string{}, Held: guard.Held(r.e.Guard)}
	for _, err := range r.e.Settings.Current().Book.Broken {
		r.summary.Unsound = append(r.summary.Unsound, err.Error())
	}
	if r.warm != nil {
		r.summary.Cold = r.warm.Cold()
	}
	r.summary.Off = r.e.Ask.StepControls(func(c ask.StepControl) bool { return c.Status == state.StepDisabled })
	stopped := r.e.Control.StoppedBy()
	r.summary.Stopped = r.e.Ask.StepControls(func(c ask.StepControl) bool { return slices.Contains(stopped, c.Ref) })
	later := ask.LaterGroups{}
	for it := range r.e.Index.Loaded().With(queue.Failed | queue.Broken | queue.Person | queue.Startable) {
		for _, f := range ask.Failures(it) {
			if f.Engine == r.e.Ledger.ID || f.Kind == act.InternalKind && r.internal[itemRun{f.Item, f.Workflow}] {
				r.summary.Failed = append(r.summary.Failed, f)
			} else if !f.Tolerated {
				r.summary.Before++
			}
		}
		for i := range it.Runs {
			run := &it.Runs[i]
			later.Add(run, now, r.e.Attempt.Deposits)
			for n := range run.Steps {
				why := run.Steps[n].Blocked
				switch {
				case it.Waits(run, n):
					r.summary.Waiting++
				case why != nil && !why.Until.IsZero() && now.Before(why.Until):
					r.summary.Later++
				case why == nil && run.Steps[n].Status == state.Waiting && workersOnly(r, run, n):
					r.summary.Workers++
				}
			}
		}
	}
	r.summary.Tried = later.Rows()
}
