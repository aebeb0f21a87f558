package attempt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// The rules are: an attempt on another machine is claimed and ended here, as one on this
// machine is, and nothing of it is in memory only. Lend commits the claim with the worker's
// own engine identifier in the attempt's key; Prepare gives what the robot is given; End
// publishes what came back and commits the end. Between Prepare and End the engine may stop:
// the next one takes the attempt up with Adopt. What is not ended is given up with GiveUp.

// Abroad makes attempts on other machines.
type Abroad struct{ *Attempts }

// Away is a step on its way on another machine.
type Away struct{ *Work }

// NewAway is NewWork of a step that another machine is to do.
func (a Abroad) NewAway(entry queue.Entry, hurried func() bool, done func(*Work)) *Away {
	return &Away{a.NewWork(entry, hurried, done)}
}

// RunnerOf names a worker's process in attempts, with the site of this workspace.
func (a Abroad) RunnerOf(process string) string { return a.ledger.Site.Runner(process) }

// Lend claims the step for a worker. ok is false where there is nothing to perform: the Work
// is over then, and Err says what went wrong, if anything did. cancelled is called when a
// person cancels the attempt; the engine then ends it with End.
func (w *Away) Lend(ctx context.Context, to Worker, cancelled func(error)) (ref layout.AttemptRef, ok bool) {
	w.a.index.Lent(to.Engine)
	skipped, err := skip(ctx, w.Work)
	if err == nil && !skipped {
		w.attempt, err = w.a.begin(ctx, w.Entry, to, true)
		err = w.a.harmless(ctx, err)
	}
	if w.Err = err; err != nil || w.attempt == nil {
		w.release()
		return ref, false
	}
	ref = w.attempt.AttemptRef
	w.Answers("")
	w.watch(cancelled)
	if w.a.index.Loaded().Held(ref.Item) || !w.mayRun() {
		w.finish(ctx) // held, or its step disabled, meanwhile
		return ref, false
	}
	w.begun(w.a.ledger.Now())
	return ref, true
}

// watch tells of a cancel from now on.
func (w *Away) watch(cancelled func(error)) {
	ref := w.attempt.AttemptRef
	w.a.cancels.watch(ref)
	ctx, _ := w.a.cancels.bind(context.Background(), ref)
	context.AfterFunc(ctx, func() { cancelled(context.Cause(ctx)) })
}

// Spent notes the processor time of the robot's program; 0: it is not known.
func (w *Away) Spent(cpu time.Duration) { w.attempt.CPU = max(0, cpu) }

// Answers names the request that the end of the attempt answers; "": none.
func (w *Away) Answers(request string) { w.attempt.by.Request = request }

// Prepare gives what the robot is given. After an error the caller ends the attempt with it.
func (w *Away) Prepare(ctx context.Context) (c *steps.Call, s *state.Step, err error) {
	err = w.guard(func() error {
		c, err = prepare(ctx, w.Work, w.bare() && w.a.robots[layout.Name(w.plan.Robot)].Fileless, false) // what its worker sends is put there
		return err
	})
	return c, w.plan, laterWhenFull(err)
}

// Again gives once more what Prepare gave, to a worker that asks again.
func (w *Away) Again(ctx context.Context) (*steps.Call, *state.Step, error) {
	c, err := w.a.newCall(ctx, w.Work)
	if err == nil {
		err = w.openPlace(ctx, c)
	}
	return c, w.plan, err
}

// Timeout is how long the attempt may take; 0: as long as it likes.
func (w *Away) Timeout() time.Duration { return time.Duration(w.plan.Timeout) }

// Withdraw gives the step back that was not lent.
func (w *Away) Withdraw() { w.release() }

// Scratch is the attempt's folder for what the robot makes.
func (w *Away) Scratch() string { return w.a.folder.ScratchDir(w.attempt.AttemptRef) }

// End ends the attempt as its robot said. log is what the robot printed, "" if nothing came.
// An error says that the end is not in the history: fault.Refused where it never will be, as the
// attempt is not the current one; else the attempt is in progress, and the next engine adopts it.
func (w *Away) End(ctx context.Context, res steps.Result, failure error, log string) error {
	if failure == nil {
		failure = w.checkPlace(ctx)
	}
	w.result, w.Err = res, failure
	if log != "" {
		if err := w.takeLog(log); err != nil {
			w.warn("keep the log of an attempt on another machine", "err", err)
		}
	}
	w.suspect()
	w.finish(ctx)
	err := w.attempt.unended
	if errors.Is(err, state.ErrStale) || ledger.IsRefused(err) {
		return fault.New(fault.Refused, err.Error())
	}
	return err
}

// takeLog appends the file of a log to the attempt's.
func (w *Away) takeLog(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(w.log, f); err != nil {
		return err
	}
	return os.Remove(file)
}

// GiveUp lets the step wait again.
func (w *Away) GiveUp(ctx context.Context, why string) error {
	return w.End(ctx, steps.Result{}, &Returned{why}, "")
}

// LostBefore counts the attempts in a row, before this one, that were lost.
func (w *Away) LostBefore() (n int) {
	ref := w.attempt.AttemptRef
	_, rec, err := w.a.ledger.ReadTip(ref.Item, ref.Workflow)
	if err != nil {
		return 0
	}
	_, s := rec.Execution.Find(ref.Workflow, ref.Step)
	if s == nil {
		return 0
	}
	keys := slices.SortedFunc(maps.Keys(s.Attempts), func(a, b layout.AttemptKey) int { return b.Compare(a) })
	for _, key := range keys {
		switch {
		case key.Compare(ref.Key) >= 0:
		case !rec.Execution.Lost(ref.Workflow, ref.Step, key):
			return n
		default:
			n++
		}
	}
	return n
}

// Leave forgets the attempt, which goes on: the engine stops, and the next one adopts it.
func (w *Away) Leave() {
	w.a.cancels.forget(w.attempt.AttemptRef)
	if err := w.writing.End(); err != nil {
		w.warn("give up the file system", "err", err)
	}
}

// Adopt takes up an attempt that an engine before lent. ok is false where it has ended.
func (a Abroad) Adopt(ref layout.AttemptRef, cancelled func(error), hurried func() bool, done func(*Work)) (w *Away, ok bool, err error) {
	entry, runner, ok := a.lent(ref)
	if !ok {
		return nil, false, nil
	}
	_, rec, err := a.ledger.ReadTip(ref.Item, ref.Workflow)
	if err != nil {
		return nil, false, err
	}
	_, s := rec.Execution.Find(ref.Workflow, ref.Step)
	if s == nil || s.Attempts[ref.Key].State != state.InProgress {
		return nil, false, nil
	}
	w = a.NewAway(entry, hurried, done)
	w.a.index.Lent(ref.Key.Engine)
	w.attempt = &claimed{AttemptRef: ref, by: Worker{Engine: ref.Key.Engine, Runner: runner, Version: s.Attempts[ref.Key].Version}, at: s.Attempts[ref.Key].Claimed}
	w.begun(w.attempt.at)
	w.attempt.given.look(a.ledger.Path(layout.ItemDir(ref.Item)), ref.Step, rec.Committed.Manifest, rec.Committed.Execution)
	w.attempt.given.since = w.attempt.at
	w.scratch = a.folder.ScratchDir(ref)
	if err := os.MkdirAll(w.scratch, 0o777); err != nil {
		return nil, false, fmt.Errorf("make the scratch folder of an adopted attempt: %w", err)
	}
	if w.writing, err = a.folder.Begin(); err != nil {
		return nil, false, err
	}
	w.watch(cancelled)
	return w, true, nil
}

// begun notes that the robot may have started.
func (w *Away) begun(at time.Time) {
	ref := w.attempt.AttemptRef
	w.attempt.started = at
	w.log = folder.NewStepLog(filepath.Join(w.a.ledger.Path(layout.ItemDir(ref.Item)), filepath.FromSlash(layout.StepLog(ref.Step, ref.Key))))
}

// lent finds the step that an attempt in progress is at.
func (a Abroad) lent(ref layout.AttemptRef) (entry queue.Entry, runner string, ok bool) {
	it := a.index.Loaded().Item(ref.Item)
	if it == nil {
		return entry, "", false
	}
	for run, i := range it.Steps() {
		s := &run.Steps[i]
		if run.Name == ref.Workflow && run.Plan.Steps[i].Name == string(ref.Step) && s.Status == state.InProgress && s.Current == ref.Key {
			return queue.Entry{Item: it, Run: run.Name, Step: ref.Step, N: i}, s.Runner, true
		}
	}
	return entry, "", false
}

// Running lists the attempts in progress whose performer is not an engine of this workspace but
// one of those that is names.
func (a Abroad) Running(is func(layout.EngineID) bool) (refs []layout.AttemptRef) {
	for _, it := range a.index.Loaded().Running() {
		for run, i := range it.Steps() {
			if s := &run.Steps[i]; s.Status == state.InProgress && is(s.Current.Engine) {
				refs = append(refs, layout.AttemptRef{Item: it.ID, Workflow: run.Name, Step: layout.Name(run.Plan.Steps[i].Name), Key: s.Current})
			}
		}
	}
	return refs
}

// Own is this process as the performer.
func (a Abroad) Own() Worker { return here(a.ledger) }

// Target is the worker that is to do the placed steps of an item; "": any.
func (a Abroad) Target(id layout.ItemID) layout.Name {
	name, _, _ := a.look(id) // of an error the claim tells
	return name
}

// look finds the worker that an item is for, and whether its object stays in its place. Every step that is offered is asked
// about, so the manifest is decoded only where it may say something of either.
func (a Abroad) look(id layout.ItemID) (target layout.Name, placed bool, err error) {
	v, err := a.ledger.Store.Tip()
	if err != nil {
		return "", false, err
	}
	data, err := a.ledger.Recent(v, id).ReadFile(layout.ItemDir(id) + "/" + layout.ManifestJSON)
	if err != nil || !bytes.Contains(data, []byte(`"`+OnWorker+`"`)) && !bytes.Contains(data, []byte(`"place"`)) {
		return "", false, err
	}
	m, err := layout.DecodeManifest(data)
	if err != nil {
		return "", false, err
	}
	return onWorker(m), m.Source.Place != nil, nil
}

// Look gives the worker that is to do the step, "" for any, and whether Prepare takes little time: it copies nothing, and
// asks no file system but that of the workspace.
func (w *Away) Look() (target layout.Name, quick bool) {
	target, placed, err := Abroad{w.a}.look(w.Entry.Item.ID)
	return target, err == nil && !placed && !w.plan.KeepInputs
}

// Robots are the built-in robots, by name.
func (a Abroad) Robots() map[layout.Name]steps.Builtin { return a.robots }
