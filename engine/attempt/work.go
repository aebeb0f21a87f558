package attempt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"bagpipe/engine/claim"
	"bagpipe/engine/folder"
	"bagpipe/engine/inbox"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/runner"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

// Outcome is an end that concerns more than its step; "" is none.
type Outcome string

const (
	Internal Outcome = "internal" // a fault of Bagpipe's own failed the workflow
	Deferred Outcome = "deferred" // the robot asked for a later call
)

// Work is one ready step on its way: claimed, performed, finished.
type Work struct {
	a     *Attempts
	Entry queue.Entry
	plan  *state.Step
	done  func(*Work)
	// hurried reports whether an end that cannot be committed is given up after a few
	// tries.
	hurried func() bool
	onward

	lock      *claim.Claim
	attempt   *claimed
	scratch   string
	writing   *disk.Writing // nil before the robot is called
	log       *folder.StepLog
	result    steps.Result
	published bool // the outputs are in their place
	Outcome   Outcome
	Err       error // of the robot until finish; then of Bagpipe: nil when the end is committed
}

// NewWork prepares a step that was taken from the queue. hurried is asked when the end
// cannot be committed; done is called once, when the step may be taken again.
func (a *Attempts) NewWork(entry queue.Entry, hurried func() bool, done func(*Work)) *Work {
	w := &Work{a: a, Entry: entry, plan: &state.Step{}, hurried: hurried, done: done}
	if run := entry.Item.Run(entry.Run); run != nil {
		w.plan = a.settings.Deployed(run.Plan.Name, &run.Plan.Steps[entry.N])
	}
	return w
}

// ForPool is the work as a pool performs it. ctx ends when the engine must not commit any
// more; the robot gets the pool's own.
func (w *Work) ForPool(ctx context.Context) runner.Work {
	return runner.Work{Step: w.Entry.ID().String(), Instances: w.plan.Instances, Prefetch: w.plan.Prefetch, Timeout: time.Duration(w.plan.Timeout), Within: within(w.plan),
		Claim: func() bool { return w.claim(ctx) }, Run: w.run, Finish: func() { w.finish(ctx) }, Next: func() *runner.Work { return goOn(ctx, w) }}
}

// callWithin is how soon after its claim, which says that the attempt is started, a robot is
// called.
const callWithin = time.Second

// within is how soon the robot is to be called; 0: what is claimed ahead of its turn, or
// gathers for a batch, waits, and its claim does not say that it is started.
func within(s *state.Step) time.Duration {
	if s.Prefetch > 0 || s.Batch > 1 {
		return 0
	}
	return callWithin
}

// claim takes the lock file, then commits the attempt: only then may the robot
// start. It answers false when there is nothing to run.
func (w *Work) claim(ctx context.Context) bool {
	ok, err := w.tryClaim(ctx)
	if err != nil {
		w.Err = err
	}
	if !ok {
		w.release()
	}
	return ok
}

func (w *Work) tryClaim(ctx context.Context) (bool, error) {
	a := w.a
	if skipped, err := skip(ctx, w); skipped {
		return false, err
	}
	err := lock(w)
	var held *claim.HeldError
	if errors.As(err, &held) {
		return false, a.pause(ctx)
	}
	if err != nil {
		return false, err
	}
	w.attempt, err = a.begin(ctx, w.Entry, here(a.ledger), within(w.plan) > 0)
	if err != nil {
		return false, a.harmless(ctx, err)
	}
	a.cancels.watch(w.attempt.AttemptRef)
	return true, nil
}

// lock takes the lock file of w's step. It names the attempt that is about to be committed; the
// commit may find a higher number and is what counts.
func lock(w *Work) error {
	self, err := w.a.ledger.Seat.Engine()
	if err != nil {
		return err
	}
	key := claim.Key{Item: w.Entry.Item.ID, Workflow: w.Entry.Run, Step: w.Entry.Step}
	w.lock, err = self.Take(key, layout.AttemptKey{N: max(1, w.stepState().Attempts+1), Engine: w.a.ledger.ID})
	return err
}

// skip skips a step that is not needed, or passed over.
func skip(ctx context.Context, w *Work) (skipped bool, err error) {
	a, id := w.a, w.Entry.Item.ID
	if why := w.stepState().Skip; why != "" {
		return true, a.harmless(ctx, a.notNeeded(ctx, id, w.Entry.Run, w.Entry.Step, why))
	}
	if why := w.passedOver(); why != "" {
		return true, a.harmless(ctx, a.passOver(ctx, id, w.Entry.Run, w.Entry.Step, why))
	}
	return false, nil
}

func (w *Work) stepState() *queue.Step {
	if run := w.Entry.Item.Run(w.Entry.Run); run != nil {
		return &run.Steps[w.Entry.N]
	}
	return &queue.Step{}
}

// harmless answers a refusal, which says that another engine was faster, by a look at
// that engine's commits.
func (a *Attempts) harmless(ctx context.Context, err error) error {
	var illegal *state.IllegalError
	if errors.As(err, &illegal) {
		return a.pause(ctx)
	}
	return err
}

// release gives the claim back, if there is one.
func (w *Work) release() {
	if w.lock != nil {
		if err := w.lock.Release(); err != nil {
			w.warn("release claim", "err", err)
		}
		w.lock = nil
	}
	if w.attempt != nil {
		w.a.cancels.forget(w.attempt.AttemptRef)
	}
	w.done(w)
}

// overtaken reports whether another engine has taken the step's lock file. An attempt elsewhere has none.
func overtaken(lock *claim.Claim) bool {
	if lock == nil {
		return false
	}
	select {
	case <-lock.Lost():
		return true
	default:
		return false
	}
}

// run calls the robot. Any fault becomes w.Err, a panic too: one piece of work must not
// take the others with it.
func (w *Work) run(ctx context.Context, aside runner.Aside) {
	ref := w.attempt.AttemptRef
	if w.a.index.Loaded().Held(ref.Item) || !w.mayRun() {
		return // held, or its step disabled, between its claim and now: given back
	}
	ctx, stop := w.a.cancels.bind(ctx, ref)
	defer stop(nil)
	w.attempt.started = w.a.ledger.Now()
	w.log = folder.NewStepLog(filepath.Join(w.a.ledger.Path(layout.ItemDir(ref.Item)), filepath.FromSlash(layout.StepLog(ref.Step, ref.Key))))
	w.Err = w.guard(func() (err error) {
		w.result, err = w.call(ctx, aside)
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
func (w *Work) finish(ctx context.Context) {
	defer w.release()
	ran := !w.attempt.started.IsZero()
	if err := w.log.Close(); err != nil && w.Err == nil {
		w.Err = fmt.Errorf("write the step's log: %w", err)
	}
	if ran && w.Err == nil {
		w.Err = w.guard(func() error { return w.publish(ctx) })
	} else if ran {
		w.publishReport(ctx)
	}
	w.attempt.keepProgress(w.scratch, w.Err)
	if ran && w.Err == nil {
		w.next = following(w)
	}
	err := w.settle(w.endDurably(ctx))
	w.attempt.unended = err
	w.attempt.given.unlock()
	if errors.Is(err, state.ErrStale) {
		w.warn("an attempt lost its claim; its result does not count", "attempt", w.attempt.Key.String())
		err = nil
	}
	w.Err = errors.Join(err, w.checkThreshold(ctx))
	if err == nil && ran {
		w.Err = errors.Join(w.Err, w.askOnError(ctx))
	}
	if err := w.writing.End(); err != nil {
		w.warn("give up the file system", "err", err)
	}
	if err := w.attempt.opened.Close(); err != nil {
		w.warn("clear what was opened", "err", err)
	}
	if w.scratch != "" && !ledger.MustStop(err) { // else the next engine finds by it what the outputs replaced, as after a crash
		if err := w.a.folder.Spares.Give(w.scratch, w.plan.Command == nil && w.lock != nil); err != nil {
			w.warn("remove scratch", "dir", w.scratch, "err", err)
		}
	}
}

// warn logs what a person need not mend, with the item and the step.
func (w *Work) warn(text string, more ...any) {
	w.a.ledger.Log.Warn(text, append([]any{"item", w.Entry.Item.ID, "step", w.Entry.Step}, more...)...)
}

// settle forgets what the outputs replaced once the end is committed, and puts it
// back when the end was refused. When the commit failed otherwise it is left: the
// attempt is in progress still, and the next engine puts it back.
func (w *Work) settle(end error) error {
	var err error
	switch {
	case end == nil && w.published && len(w.result.Outputs)+len(w.result.Remove) == 0: // it replaced nothing
	case end == nil && w.published:
		err = w.a.folder.ForgetReplaced(w.attempt.AttemptRef)
	case end == nil, ledger.IsRefused(end):
		if !overtaken(w.lock) { // whoever has the claim now may have published
			err = w.a.folder.PutBack(w.attempt.AttemptRef)
		}
	}
	if err != nil {
		w.warn("settle a step's outputs", "err", err)
	}
	return end
}

// publishReport keeps what a robot derived although it failed: its report is what
// the producer, or the operator, needs. The failure stands whatever becomes of it.
func (w *Work) publishReport(ctx context.Context) {
	if len(w.result.Outputs) == 0 {
		return
	}
	w.result.Remove, w.result.Children = nil, nil
	w.result.Outputs = slices.DeleteFunc(w.result.Outputs, func(o steps.Output) bool { return o.To == layout.ContentDir })
	if err := w.publish(ctx); err != nil {
		w.warn("publish a failed step's report", "err", err)
	}
}

// publish refuses outputs of an attempt whose claim has been taken over, here by
// another engine or in the history by another site.
func (w *Work) publish(ctx context.Context) error {
	if overtaken(w.lock) {
		return fmt.Errorf("the claim was lost: %w", state.ErrStale)
	}
	if w.result.Status == steps.Skipped {
		w.result.Children, w.result.Choose, w.result.Message = nil, nil, w.plan.SkipMessage(w.result.Message)
	}
	if err := checkChoice(w.plan, w.result); err != nil {
		return err
	}
	if len(w.result.Outputs)+len(w.result.Remove)+len(w.result.Children) > 0 {
		if err := w.checkCurrent(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(w.verifyInventoried(ctx), w.attempt.given.check(w.a.ledger, w.attempt.AttemptRef, w.result)); err != nil {
		return err
	}
	if err := w.multiply(ctx); err != nil {
		return laterWhenFull(err)
	}
	if w.a.ledger.Site.Name != "" {
		if err := digestOutputs(ctx, w); err != nil {
			return err
		}
	}
	if err := w.a.folder.Publish(w.attempt.AttemptRef, w.scratch, w.writing, w.result); err != nil {
		return laterWhenFull(steps.SystemFailure("%w", err))
	}
	w.published = true
	return nil
}

// digestOutputs notes what an attempt made, so that another that was given the same at another
// site can be held against it.
func digestOutputs(ctx context.Context, w *Work) error {
	var made []string
	for _, o := range w.result.Outputs {
		sum, err := inbox.Digest(ctx, filepath.Join(w.scratch, filepath.FromSlash(string(o.From))))
		if err != nil {
			return steps.SystemFailure("digest %s: %w", o.To, err)
		}
		made = append(made, string(o.To)+" "+sum.Digest)
	}
	if w.result.Inventory != nil {
		data, err := w.result.Inventory.Encode()
		if err != nil {
			return err
		}
		made = append(made, layout.InventoryJSON+" "+ledger.DigestOf(data))
	}
	if len(w.result.Metadata) > 0 {
		data, err := layout.EncodeJSON(w.result.Metadata)
		if err != nil {
			return err
		}
		made = append(made, "metadata "+ledger.DigestOf(data))
	}
	for _, c := range w.result.Choose {
		made = append(made, "chosen "+string(c))
	}
	slices.Sort(made)
	w.attempt.Outputs = ledger.DigestOf([]byte(strings.Join(made, "\n")))
	return nil
}

// verifyInventoried verifies the source when the content is inventoried: from then on
// the inventory's digests are compared. Content may share its bytes with the source, so a
// robot that writes into it changes both.
func (w *Work) verifyInventoried(ctx context.Context) error {
	if w.result.Inventory == nil {
		return nil
	}
	_, rec, err := w.a.ledger.ReadTip(w.attempt.Item, w.attempt.Workflow)
	if err != nil {
		return err
	}
	return verifyCatalogued(ctx, w, rec.Manifest)
}

// checkCurrent answers state.ErrStale when the attempt is not, by the newest
// history, the one in progress: then its outputs may not touch the item.
func (w *Work) checkCurrent(ctx context.Context) error {
	l, ref := w.a.ledger, w.attempt.AttemptRef
	err := l.Store.Refresh(ctx)
	if err == nil {
		err = w.a.guard.Look(ctx, ref.Item)
	}
	if err != nil {
		return laterWhenFull(err)
	}
	v, err := l.Store.Known() // as new as the branch is now
	if err != nil {
		return laterWhenFull(err)
	}
	rec, err := l.Read(v, ref.Item, ref.Workflow)
	if err != nil {
		return laterWhenFull(err)
	}
	defer l.Decoded.Keep(ref.Item, rec.Committed.Execution, rec.Execution)
	return current(rec.Execution, ref)
}

// current answers state.ErrStale when the attempt is not the one in progress by x.
func current(x *state.Execution, a layout.AttemptRef) error {
	_, s := x.Find(a.Workflow, a.Step)
	if s == nil {
		return fmt.Errorf("the step is gone from the item's record: %w", state.ErrStale)
	}
	key, at, _ := s.Current()
	if in, is := state.Cancelled(x, a.Workflow, a.Step, a.Key); is {
		return &cancelledError{in}
	}
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

// endDurably tries again when the commit fails for a reason that may pass, such as a full
// disk: the robot's work should not have to be done again.
func (w *Work) endDurably(ctx context.Context) error {
	const (
		tries           = 5
		mostBetweenEnds = 2 * time.Second // a person who stops the run waits that long
	)
	for n := 1; ; n++ {
		err := w.end(ctx)
		if err == nil || errors.Is(err, state.ErrStale) || ledger.IsRefused(err) || ledger.MustStop(err) || n >= tries && w.hurried() {
			return err
		}
		w.warn("commit a step's end; it is tried again", "err", err)
		time.Sleep(min(time.Duration(n)*200*ledger.Resolution, mostBetweenEnds))
	}
}

// end commits how the attempt ended.
func (w *Work) end(ctx context.Context) error {
	l, c := w.a.ledger, w.attempt
	c.checks = w.result.Checks
	var later *steps.Later
	var internal *InternalError
	var returned *Returned
	switch {
	case c.started.IsZero():
		return abandon(ctx, l, c.AttemptRef, "not started: its turn did not come within a second, the engine is stopping, the item is held, or the step is disabled")
	case errors.Is(w.Err, state.ErrStale):
		return w.Err
	case errors.Is(w.Err, runner.ErrInterrupted):
		return abandon(ctx, l, c.AttemptRef, "interrupted: the engine was stopped")
	case errors.As(w.Err, &returned):
		return abandon(ctx, l, c.AttemptRef, returned.Why)
	case errors.As(w.Err, &internal):
		w.Outcome = Internal
		return w.a.failInternally(ctx, c, internal)
	case errors.As(w.Err, &later):
		w.Outcome = Deferred
		return w.a.deferUntil(ctx, c, later)
	case w.Err != nil:
		if err := l.Seat.Check(); err != nil { // others may have taken the scratch away: the item is not to blame
			return err
		}
		return w.a.fail(ctx, c, w.Err, w.log.Tail(), w.result.Milestones)
	}
	err := w.a.complete(ctx, c, w.result, w.next)
	var conflict *conflictError
	if errors.As(err, &conflict) {
		if err := w.conflicted(ctx, conflict); err != nil {
			return err
		}
		return w.end(ctx)
	}
	return err
}

// pause waits a moment and looks at what other engines committed, so that a step
// another one has taken is not asked for again and again.
func (a *Attempts) pause(ctx context.Context) error {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	return a.ledger.Store.Refresh(ctx)
}

// conflicted fails an attempt whose end was refused for a conflict, and puts back what it published.
func (w *Work) conflicted(ctx context.Context, conflict *conflictError) error {
	if with, err := w.a.setBy(ctx, w.attempt.Item, conflict.what); err == nil && with != "" { // else all that may have done so are named
		conflict.with = with
	}
	if w.published {
		if err := w.a.folder.PutBack(w.attempt.AttemptRef); err != nil {
			return err
		}
		w.published = false
	}
	w.Err = steps.SystemFailure("%w", conflict)
	return nil
}
