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
	"bagpipe/layout/disk"
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

// Summary is what a run did.
type Summary struct {
	Admitted int                  `json:"admitted"`
	Rejected int                  `json:"rejected"`
	Steps    map[state.Status]int `json:"steps"`
	Failed   []Failure            `json:"failed"`       // steps that this run saw fail, and that stand so
	Before   int                  `json:"failedBefore"` // failed steps of earlier runs
	Waiting  int                  `json:"waiting"`      // steps that wait for a person
	Later    int                  `json:"later"`        // steps that wait for their time
	Growing  []string             `json:"growing"`      // drops not yet settled
}

// Failure is an item that needs someone.
type Failure struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	Workflow   string        `json:"workflow"`
	Step       layout.Name   `json:"step"`
	Kind       string        `json:"kind"`
	Message    string        `json:"message"`
	Optional   bool          `json:"optional,omitempty"`
	engine     layout.EngineID
}

// run is one call of Run.
type run struct {
	e    *Engine
	o    RunOptions
	ctx  context.Context // of commits and claims: not ended by a signal, so that what finished is recorded
	pool *runner.Pool
	box  *inbox.Box

	mu      sync.Mutex // guards summary, fault, note, and calls of o.Report
	summary Summary
	fault   error
	note    string

	inboxIdle chan bool // the intake loop says whether it has something to wait for

	upkeep chan struct{} // asks for maintenance
	since  int           // steps ended since it was asked for; guarded by mu

	left []inbox.Taken // taken and not yet items: their commits failed; the intake loop's own
}

// Run takes in the inbox and works until nothing is ready, or, watching, until
// drained. It first resumes what a dead engine left.
func (e *Engine) Run(ctx context.Context, o RunOptions) (Summary, error) {
	box, err := e.box(o.Watch)
	if err != nil {
		return Summary{}, err
	}
	if _, err := e.register(); err != nil {
		return Summary{}, err
	}
	if err := e.Load(ctx); err != nil {
		return Summary{}, err
	}
	if err := e.repairFolders(ctx); err != nil {
		return Summary{}, err
	}
	r := &run{e: e, o: o, ctx: context.WithoutCancel(ctx), pool: runner.New(o.Jobs), box: box,
		inboxIdle: make(chan bool, 1), upkeep: make(chan struct{}, 1), summary: Summary{Steps: map[state.Status]int{}, Failed: []Failure{}, Growing: []string{}}}
	e.tell(func(ended Ended) { r.report(Report{Ended: &ended}) })
	defer e.tell(nil)
	if err := r.resume(ctx); err != nil {
		return r.summary, err
	}
	err = r.work(ctx)
	r.conclude()
	return r.summary, errors.Join(err, e.store.CaughtUp(r.ctx))
}

// repairFolders brings the records shown in the item folders in line with the
// history. Up to some thousand items every one is looked at, which finds those
// edited in place; beyond that maintain does, and here only what changed since
// the last engine is.
func (e *Engine) repairFolders(ctx context.Context) error {
	const fewEnough = 10_000
	repair := e.store.Repair
	if e.index.Len() <= fewEnough {
		repair = e.store.RepairAll
	}
	if err := repair(ctx); err != nil {
		return fmt.Errorf("bring the item folders in line with the history: %w", err)
	}
	return nil
}

// tell sets who is told of ended steps.
func (e *Engine) tell(f func(Ended)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = f
}

// resume takes up what dead engines left: scratch, intake, attempts.
func (r *run) resume(ctx context.Context) error {
	e := r.e
	if err := e.sweepScratch(e.alive); err != nil {
		return err
	}
	if err := e.recoverLost(ctx); err != nil {
		return err
	}
	if err := e.sweepClaims(); err != nil {
		return err
	}
	var err error
	r.left, err = e.resumeIntake(ctx, r.box, nil, r.admitted)
	return err
}

// alive tells whether an engine lives.
func (e *Engine) alive(id layout.EngineID) (bool, error) {
	if id == e.id {
		return true, nil
	}
	self, err := e.register()
	if err != nil {
		return true, err
	}
	return self.Alive(id)
}

// sweepClaims removes the lock files of dead engines, so that those which are
// there tell who is at work. Whoever needs one earlier takes it over.
func (e *Engine) sweepClaims() error {
	self, err := e.register()
	if err != nil {
		return err
	}
	holders, err := claim.List(e.root)
	if err != nil {
		return err
	}
	for _, h := range holders {
		if h.Damaged {
			continue
		}
		if lives, err := e.alive(h.Engine); err != nil || lives {
			continue
		}
		c, err := self.Take(claim.Key{Item: h.Item, Workflow: h.Workflow, Step: h.Step}, layout.AttemptKey{N: 1, Engine: e.id})
		var held *claim.HeldError
		if errors.As(err, &held) {
			continue
		}
		if err != nil {
			return fmt.Errorf("clear the claim of dead engine %s: %w", h.Engine, err)
		}
		if err := c.Release(); err != nil {
			return err
		}
	}
	return nil
}

// recoverLost lets steps wait again whose engine is dead.
func (e *Engine) recoverLost(ctx context.Context) error {
	for _, it := range e.index.Running() {
		for r := range it.Runs {
			run := &it.Runs[r]
			for i := range run.Steps {
				s := &run.Steps[i]
				if s.Status != state.InProgress {
					continue
				}
				lives, err := e.alive(s.Current.Engine)
				if err != nil {
					return fmt.Errorf("see whether engine %s lives: %w", s.Current.Engine, err)
				}
				if lives {
					continue
				}
				why := fmt.Sprintf("engine %s (%s) is gone; the step is resumed", s.Current.Engine, s.Runner)
				err = e.abandon(ctx, it.ID, run.Name, layout.Name(run.Plan.Steps[i].Name), s.Current, why)
				if err != nil && !IsRefused(err) {
					return fmt.Errorf("recover item %s: %w", it.ID.Short(), err)
				}
			}
		}
	}
	return nil
}

// work runs until there is nothing to do, the run is drained, or something is
// broken that a person must mend.
func (r *run) work(ctx context.Context) error {
	side, stopSide := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { r.tend(side) })
	wg.Go(func() { r.maintain(side) })
	wg.Go(func() { r.intake(side) })
	stopped := context.AfterFunc(ctx, r.pool.Stop)
	wg.Go(func() {
		select {
		case <-r.o.Drain:
			r.pool.Drain()
		case <-side.Done():
		}
	})
	r.dispatch(ctx)
	r.pool.Drain()
	r.pool.Wait()
	stopped()
	stopSide()
	wg.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault
}

// dispatch hands ready steps to the pool.
func (r *run) dispatch(ctx context.Context) {
	inboxIdle := false
	for {
		if !r.pool.Admit(ctx) {
			return
		}
		busy := r.pool.Busy() > 1 // besides this admission; asked before Take, as finishing makes steps ready
		if why := r.e.lowSpace(); why != nil {
			r.pool.Forgo()
			if !r.pauseFor(ctx, why, busy) {
				return
			}
			continue
		}
		if entry, ok := r.e.index.Take(r.e.o.Now()); ok {
			r.launch(entry)
			continue
		}
		r.pool.Forgo()
		due, dated := r.e.index.NextDue()
		pause := due.Sub(r.e.o.Now())
		if !r.o.Watch && inboxIdle && !busy && (!dated || pause > waitForRetry) {
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
		case <-r.pool.Drained():
		case <-ctx.Done():
		}
		timer.Stop()
	}
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

// lowSpace is why nothing may be taken in or started, or nil. The answer is a
// second old at most: it is asked for every step.
func (e *Engine) lowSpace() error {
	const fresh = time.Second
	e.space.mu.Lock()
	defer e.space.mu.Unlock()
	now := e.o.Now()
	if age := now.Sub(e.space.at); !e.space.at.IsZero() && age >= 0 && age < fresh {
		return e.space.err
	}
	e.space.at, e.space.err = now, e.lookForSpace()
	return e.space.err
}

func (e *Engine) lookForSpace() error {
	free, err := disk.Free(e.root)
	if err != nil {
		return err
	}
	if least := e.current().settings.free(); free < least {
		return fmt.Errorf("paused: %s free in %s, less than limits: free: %s in bagpipe.yaml; nothing is taken in or started until there is room", size(free), e.root, size(least))
	}
	return nil
}

func size(n uint64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/unit, 0
	for v >= unit && i < 4 {
		v, i = v/unit, i+1
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[i])
}

func (r *run) launch(entry queue.Entry) {
	w := &work{e: r.e, ctx: r.ctx, entry: entry, patient: r.o.Watch, stopping: r.pool.Draining}
	w.done = func(w *work) { r.ended(w) }
	r.pool.Go(runner.Work{Claim: w.claim, Timeout: w.timeout, Run: w.run, Finish: w.finish})
}

// ended notes how a piece of work went, and lets its step be taken again.
func (r *run) ended(w *work) {
	if w.err != nil {
		r.broken(fmt.Errorf("%s of item %s: %w", w.entry.Step, w.entry.Item.ID.Short(), w.err))
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
			err = e.recoverLost(ctx)
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

// intake scans the inbox: once, waiting for what is about to settle, or on and
// on when watching.
func (r *run) intake(ctx context.Context) {
	if r.o.Watch {
		err := r.watchInbox(ctx)
		if err != nil && ctx.Err() == nil {
			r.broken(fmt.Errorf("watch the inbox: %w", err))
		}
		return
	}
	// A drop made just before this command settles within the quiet time; one
	// that grows all the while is left for the next run.
	patience := r.e.o.Now().Add(2*r.e.current().settings.quiet() + time.Second)
	for {
		waiting := r.takeIn(ctx)
		next, ok := soonest(waiting, patience)
		if !ok || ctx.Err() != nil || r.pool.Draining() {
			r.growing(waiting)
			r.inboxIdle <- true
			return
		}
		select {
		case <-time.After(max(next.Sub(r.e.o.Now()), 20*ms)):
		case <-ctx.Done():
		}
	}
}

// watchInbox scans whenever the box says a scan is worthwhile.
func (r *run) watchInbox(ctx context.Context) error {
	wake := make(chan struct{}, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-wake:
				r.takeIn(ctx)
			}
		}
	})
	defer wg.Wait()
	return r.box.Run(ctx, func() {
		select {
		case wake <- struct{}{}:
		default: // a scan is due already
		}
	})
}

// soonest is when a waiting drop may settle, if that is within patience.
func soonest(waiting []inbox.Waiting, patience time.Time) (t time.Time, ok bool) {
	for _, w := range waiting {
		if !w.Until.IsZero() && !w.Until.After(patience) && (!ok || w.Until.Before(t)) {
			t, ok = w.Until, true
		}
	}
	return t, ok
}

func (r *run) growing(waiting []inbox.Waiting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range waiting {
		r.summary.Growing = append(r.summary.Growing, fmt.Sprintf("%s/%s: %s", w.Collection, layout.EncodePath(w.Name), w.Reason))
	}
}

// takeIn takes in what has settled and sets bad drops aside.
func (r *run) takeIn(ctx context.Context) []inbox.Waiting {
	e := r.e
	settled, waiting, bad, err := r.box.Scan(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.broken(fmt.Errorf("scan the inbox: %w", err))
		}
		return nil
	}
	for _, b := range bad {
		kept, err := r.box.Reject(ctx, b.Drop, b.Rule, b.Reason)
		if errors.Is(err, inbox.ErrGone) {
			continue
		}
		if err != nil {
			r.broken(fmt.Errorf("set %s aside: %w", b.Path, err))
			continue
		}
		r.admitted(Admitted{Collection: b.Collection, Label: layout.EncodePath(b.Name), Rejected: b.Reason, KeptAs: kept})
	}
	if r.pool.Draining() {
		return waiting
	}
	if len(r.left) > 0 {
		if r.left, err = e.resumeIntake(ctx, r.box, r.left, r.admitted); err != nil {
			r.broken(err)
		}
	}
	left, err := e.admitAll(ctx, r.box, settled, r.admitted)
	if r.left = append(r.left, left...); err != nil {
		r.broken(err)
	}
	return waiting
}

// conclude looks over the index for what is left.
func (r *run) conclude() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.e.o.Now()
	for it := range r.e.index.Items() {
		for _, f := range failures(it) {
			if f.engine == r.e.id {
				r.summary.Failed = append(r.summary.Failed, f)
			} else {
				r.summary.Before++
			}
		}
		for i := range it.Runs {
			run := &it.Runs[i]
			for n := range run.Steps {
				why := run.Steps[n].Blocked
				switch {
				case it.Waits(run, n):
					r.summary.Waiting++
				case why != nil && !why.Until.IsZero() && now.Before(why.Until):
					r.summary.Later++
				}
			}
		}
	}
}

// failures lists what needs someone on one item.
func failures(it *queue.Item) (out []Failure) {
	if it.Broken != "" {
		return []Failure{{Item: it.ID, Collection: it.Collection, Label: it.Label, Kind: state.SystemKind, Message: it.Broken}}
	}
	for i := range it.Runs {
		run := &it.Runs[i]
		for n := range run.Steps {
			if s := &run.Steps[n]; s.Status == state.Failed {
				out = append(out, Failure{Item: it.ID, Collection: it.Collection, Label: it.Label, Workflow: run.Name,
					Step: layout.Name(run.Plan.Steps[n].Name), Kind: s.Kind, Message: s.Message, Optional: run.Plan.Steps[n].Optional, engine: s.Current.Engine})
			}
		}
	}
	return out
}

// backoff is the pause after the failures-th failure in a row.
func (e *Engine) backoff(failures int) time.Duration {
	return e.current().settings.backoff().Wait(failures, rand.Float64())
}
