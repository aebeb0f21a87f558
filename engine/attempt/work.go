package attempt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"bagpipe/engine/claim"
	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/runner"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// Work is one ready step on its way: claimed, performed, finished.
type Work struct {
	e     *Attempts
	ctx   context.Context // ends when the engine must not commit any more
	Entry queue.Entry
	done  func(*Work)
	// patient work goes on trying to commit its end until stopping says so; else
	// it tries a few times.
	patient  bool
	stopping func() bool

	lock      *claim.Claim
	attempt   *folder.Attempt
	plan      *state.Step
	scratch   string
	started   time.Time
	ran       bool
	published bool // its outputs are in their place
	result    steps.Result
	Err       error
	log       *folder.StepLog
	suspected bool // its failure counts before it is committed
	Internal  bool // it failed its workflow, by a fault of Bagpipe's own
}

// NewWork prepares a step that was taken from the queue. ctx ends when the engine must not
// commit any more; done is called once, when the step may be taken again.
func (at *Attempts) NewWork(ctx context.Context, entry queue.Entry, patient bool, stopping func() bool, done func(*Work)) *Work {
	return &Work{e: at, ctx: ctx, Entry: entry, patient: patient, stopping: stopping, done: done}
}

// ForPool is the work as a pool performs it.
func (w *Work) ForPool() runner.Work {
	return runner.Work{Step: w.Entry.ID().String(), Instances: w.planStep().Instances, Claim: w.claim, Timeout: w.timeout, Run: w.run, Finish: w.finish}
}

// claim takes the lock file, then commits the attempt: only then may the robot
// start. It answers false when there is nothing to run.
func (w *Work) claim(context.Context) bool {
	ok, err := w.tryClaim()
	if err != nil {
		w.Err = err
	}
	if !ok {
		w.release()
	}
	return ok
}

func (w *Work) tryClaim() (bool, error) {
	e, it := w.e, w.Entry.Item
	if why := w.stepState().Skip; why != "" {
		err := e.notNeeded(w.ctx, it.ID, w.Entry.Run, w.Entry.Step, why)
		return false, w.harmless(err)
	}
	if why := w.passedOver(); why != "" {
		err := e.passOver(w.ctx, it.ID, w.Entry.Run, w.Entry.Step, why)
		return false, w.harmless(err)
	}
	self, err := e.ledger.Seat.Engine()
	if err != nil {
		return false, err
	}
	key := claim.Key{Item: it.ID, Workflow: w.Entry.Run, Step: w.Entry.Step}
	// The lock file names the attempt that is about to be committed; the commit
	// may find a higher number and is what counts.
	w.lock, err = self.Take(key, layout.AttemptKey{N: max(1, w.stepState().Attempts+1), Engine: e.ledger.ID})
	var held *claim.HeldError
	if errors.As(err, &held) {
		return false, e.pause(w.ctx)
	}
	if err != nil {
		return false, err
	}
	w.attempt, err = e.begin(w.ctx, w.Entry)
	if err != nil {
		return false, w.harmless(err)
	}
	return true, nil
}

func (w *Work) stepState() *queue.Step {
	if run := w.Entry.Item.Run(w.Entry.Run); run != nil {
		return &run.Steps[w.Entry.N]
	}
	return &queue.Step{}
}

// harmless turns a refusal, which only says that another was faster, into a look
// at what the other did.
func (w *Work) harmless(err error) error {
	if err == nil {
		return nil
	}
	var illegal *state.IllegalError
	if errors.As(err, &illegal) {
		return w.e.pause(w.ctx)
	}
	return err
}

// release gives the claim back, if there is one.
func (w *Work) release() {
	if w.lock != nil {
		if err := w.lock.Release(); err != nil {
			w.e.ledger.Log.Warn("release claim", "item", w.Entry.Item.ID, "step", w.Entry.Step, "err", err)
		}
		w.lock = nil
	}
	w.done(w)
}

func (w *Work) timeout() time.Duration {
	w.plan = w.planStep()
	return time.Duration(w.plan.Timeout)
}

func (w *Work) planStep() *state.Step {
	if run := w.Entry.Item.Run(w.Entry.Run); run != nil {
		return &run.Plan.Steps[w.Entry.N]
	}
	return &state.Step{}
}

// run calls the robot. Whatever goes wrong becomes w.err, a panic too: one piece
// of work must not take the others with it.
func (w *Work) run(ctx context.Context) {
	if it := w.e.index.Loaded().Item(w.attempt.Item); it != nil && it.Held || !w.mayRun() {
		return // held, or its step disabled, between its claim and now: given back
	}
	w.ran = true
	w.started = w.e.ledger.Now()
	w.Err = w.guard(func() (err error) {
		w.result, err = w.call(ctx)
		return err
	})
	w.Err = laterWhenFull(w.Err)
	if cause := context.Cause(ctx); cause != nil && w.Err != nil {
		w.Err = cause
	}
	w.suspect()
}

// finish ends the attempt in the history: outputs first, then the commit, and
// only then the claim. It runs even while the pool drains.
func (w *Work) finish() {
	defer w.release()
	if w.log != nil {
		if err := w.log.Close(); err != nil && w.Err == nil {
			w.Err = fmt.Errorf("write the step's log: %w", err)
		}
	}
	if w.Err == nil && w.ran {
		w.Err = w.guard(w.publish)
	} else if w.ran {
		w.publishReport()
	}
	w.keepProgress()
	err := w.settle(w.endDurably())
	if errors.Is(err, state.ErrStale) {
		w.e.ledger.Log.Warn("an attempt lost its claim; its result does not count", "item", w.attempt.Item, "step", w.attempt.Step, "attempt", w.attempt.Key.String())
		err = nil
	}
	w.Err = errors.Join(err, w.checkThreshold())
	if w.scratch != "" {
		if err := w.e.folder.Spares.Give(w.scratch, w.plan.Command == nil); err != nil {
			w.e.ledger.Log.Warn("remove scratch", "dir", w.scratch, "err", err)
		}
	}
}

// settle forgets what the outputs replaced once the end is committed, and puts it
// back when the end was refused. When the commit failed otherwise it is left: the
// attempt is in progress still, and the next engine puts it back.
func (w *Work) settle(end error) error {
	var err error
	switch {
	case end == nil && w.published && len(w.result.Outputs)+len(w.result.Remove) == 0: // it replaced nothing
	case end == nil && w.published:
		err = w.e.folder.ForgetReplaced(w.attempt)
	case end == nil, ledger.IsRefused(end):
		select {
		case <-w.lock.Lost(): // whoever has the claim now may have published
		default:
			err = w.e.folder.PutBack(w.attempt)
		}
	}
	if err != nil {
		w.e.ledger.Log.Warn("settle a step's outputs", "item", w.attempt.Item, "step", w.attempt.Step, "err", err)
	}
	return end
}

// publishReport keeps what a robot derived although it found the content wanting:
// its report is what the producer needs. The failure stands whatever becomes of
// it.
func (w *Work) publishReport() {
	if steps.KindOf(w.Err) != steps.Content || len(w.result.Outputs) == 0 {
		return
	}
	w.result.Remove, w.result.Children = nil, nil
	w.result.Outputs = slices.DeleteFunc(w.result.Outputs, func(o steps.Output) bool { return o.To == layout.ContentDir })
	if err := w.publish(); err != nil {
		w.e.ledger.Log.Warn("publish a failed step's report", "item", w.attempt.Item, "step", w.attempt.Step, "err", err)
	}
}

// publish refuses outputs of an attempt whose claim has been taken over, here by
// another engine or in the history by another site.
func (w *Work) publish() error {
	select {
	case <-w.lock.Lost():
		return fmt.Errorf("the claim was lost: %w", state.ErrStale)
	default:
	}
	if w.result.Status == steps.Skipped {
		w.result.Children = nil
	}
	if len(w.result.Outputs)+len(w.result.Remove)+len(w.result.Children) > 0 {
		if err := w.checkCurrent(); err != nil {
			return err
		}
	}
	if err := w.verifyInventoried(); err != nil {
		return err
	}
	if err := w.multiply(); err != nil {
		return laterWhenFull(err)
	}
	if err := w.e.folder.Publish(w.attempt, w.scratch, w.result); err != nil {
		return laterWhenFull(steps.SystemFailure("%w", err))
	}
	w.published = true
	return nil
}

// verifyInventoried verifies the source when the content is inventoried: from then on
// the inventory's digests are compared. Content may share its bytes with the source, so a
// robot that writes into it changes both.
func (w *Work) verifyInventoried() error {
	if w.result.Inventory == nil {
		return nil
	}
	v, err := w.e.ledger.Store.Tip()
	if err != nil {
		return err
	}
	rec, err := w.e.ledger.Read(v, w.attempt.Item, w.attempt.Workflow)
	if err != nil {
		return err
	}
	return w.e.verifySource(w.ctx, rec.Manifest, nil)
}

// checkCurrent answers state.ErrStale when the attempt is not, by the newest
// history, the one in progress: then its outputs may not touch the item.
func (w *Work) checkCurrent() error {
	e, a := w.e, w.attempt
	if err := e.ledger.Store.Refresh(w.ctx); err != nil {
		return laterWhenFull(err)
	}
	if err := e.guard.Look(w.ctx, a.Item); err != nil {
		return laterWhenFull(err)
	}
	v, err := e.ledger.Store.Tip()
	if err != nil {
		return laterWhenFull(err)
	}
	rec, err := e.ledger.Read(v, a.Item, a.Workflow)
	if err != nil {
		return laterWhenFull(err)
	}
	return current(rec.Execution, a)
}

// current answers state.ErrStale when the attempt is not the one in progress by x.
func current(x *state.Execution, a *folder.Attempt) error {
	_, s := x.Find(a.Workflow, a.Step)
	if s == nil {
		return fmt.Errorf("the step is gone from the item's record: %w", state.ErrStale)
	}
	key, at, _ := s.Current()
	if key != a.Key || at.State != state.InProgress || x.Lost(a.Workflow, a.Step, a.Key) {
		return fmt.Errorf("attempt %s stands in its place: %w", key, state.ErrStale)
	}
	return nil
}

// laterWhenFull lets a step wait that found no room: a full disk is the
// operator's to mend, and no item should fail for it.
func laterWhenFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &steps.Later{Reason: err.Error()}
	}
	return err
}

// endDurably tries again when the commit fails for a reason that may pass, such
// as a full disk: what was done should not have to be done again.
func (w *Work) endDurably() error {
	const (
		tries           = 5
		mostBetweenEnds = 2 * time.Second // a person who stops the run waits that long
	)
	for n := 1; ; n++ {
		err := w.end()
		if err == nil || ledger.IsRefused(err) || ledger.MustStop(err) || !w.patient && n >= tries || w.patient && n >= tries && w.stopping() {
			return err
		}
		w.e.ledger.Log.Warn("commit a step's end; it is tried again", "item", w.attempt.Item, "step", w.attempt.Step, "err", err)
		time.Sleep(min(time.Duration(n)*200*ledger.Resolution, mostBetweenEnds))
	}
}

// end commits how the attempt ended.
func (w *Work) end() error {
	e, a := w.e, w.attempt
	var later *steps.Later
	var internal *InternalError
	switch {
	case !w.ran:
		return e.abandon(w.ctx, a.Item, a.Workflow, a.Step, a.Key, "not started: the engine is stopping, the item is held, or the step is disabled")
	case errors.Is(w.Err, state.ErrStale):
		return w.Err
	case errors.Is(w.Err, runner.ErrInterrupted):
		return e.abandon(w.ctx, a.Item, a.Workflow, a.Step, a.Key, "interrupted: the engine was stopped")
	case errors.As(w.Err, &internal):
		w.Internal = true
		return e.failInternally(w.ctx, a, internal)
	case errors.As(w.Err, &later):
		return e.Defer(w.ctx, a, w.started, later)
	case w.Err != nil:
		if err := e.ledger.Seat.Check(); err != nil { // others may have taken the scratch away: the item is not to blame
			return err
		}
		return e.Fail(w.ctx, a, w.started, w.Err, w.log.Tail(), w.result.Milestones)
	}
	return e.Complete(w.ctx, a, w.started, w.result)
}

// pause waits a moment and looks at what other engines committed, so that a step
// another one has taken is not asked for again and again.
func (at *Attempts) pause(ctx context.Context) error {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	return at.ledger.Store.Refresh(ctx)
}
