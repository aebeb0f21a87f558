package attempt

import (
	"context"
	"path/filepath"

	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/mounted"
	"bagpipe/engine/queue"
	"bagpipe/engine/runner"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// call prepares the attempt's scratch folder and calls the step's robot.
func (w *Work) call(ctx context.Context, aside runner.Aside) (_ steps.Result, err error) {
	if w.writing, err = w.a.folder.Begin(); err != nil {
		return steps.Result{}, err
	}
	if !w.bare() {
		w.scratch = w.a.folder.ScratchDir(w.attempt.AttemptRef)
		if err := w.a.folder.Spares.Take(w.scratch); err != nil {
			return steps.Result{}, err
		}
	}
	c, err := w.a.newCall(ctx, w)
	if err != nil {
		return steps.Result{}, err
	}
	c.Rounds, c.Aside = w.a.folder.Rounds, aside
	if err := w.verifyDeposited(ctx, c); err != nil {
		return steps.Result{}, err
	}
	if err := w.keepInputs(c); err != nil {
		return steps.Result{}, err
	}
	if w.plan.Starts != "" {
		return w.startNext(ctx, c)
	}
	stop := tellProgress(c)
	defer stop()
	return w.a.performer.Perform(ctx, w.plan, c)
}

// guard turns a panic of f into an InternalError, with the stack in the step's log.
func (w *Work) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &InternalError{Cause: p}
			logPanic(w.a.ledger.Log, w.log, w.attempt.Item, w.attempt.Step, p)
		}
	}()
	return f()
}

// verifyDeposited verifies the source of an item that is deposited, or cleaned up.
func (w *Work) verifyDeposited(ctx context.Context, c *steps.Call) error {
	if !w.a.Deposits(w.plan) {
		return nil
	}
	m, err := layout.DecodeManifest(c.Manifest)
	if err != nil {
		return err
	}
	return w.a.verifySource(ctx, m, c.Inventory)
}

// bare reports whether the step needs no scratch folder.
func (w *Work) bare() bool {
	return w.plan.Starts != "" || w.plan.Command == nil && w.a.robots[layout.Name(w.plan.Robot)].Bare
}

// newCall gives the robot's view of the item, by the history that the claim is in.
func (a *Attempts) newCall(ctx context.Context, w *Work) (*steps.Call, error) {
	ref, it := w.attempt, w.Entry.Item
	v, err := a.ledger.Store.Known() // the claim is in it
	if err != nil {
		return nil, err
	}
	rec, err := a.ledger.Read(a.ledger.Recent(v, ref.Item), ref.Item, ref.Workflow)
	if err != nil {
		return nil, err
	}
	defer a.ledger.Decoded.Keep(ref.Item, rec.ExecutionJ, rec.Execution)
	if w.plan.Starts == "" {
		if err := a.checkBytes(ctx, rec); err != nil {
			return nil, err
		}
	}
	dir := layout.ItemDir(ref.Item)
	var inventory []byte
	if rec.Manifest.Inventory != nil {
		if inventory, err = ledger.ReadOptional(v, dir+"/"+layout.InventoryJSON); err != nil {
			return nil, err
		}
	}
	abs := a.ledger.Path(dir)
	set := a.settings.Current().Settings
	store := set.StoreDir(a.ledger.Root)
	own, _ := w.plan.With["store"].(string)
	if own != "" {
		store = settings.Below(a.ledger.Root, own)
	}
	if a.Deposits(w.plan) {
		if err := a.checkStore(ctx, store, own); err != nil {
			return nil, err
		}
	}
	return &steps.Call{
		Item: ref.Item, Collection: it.Collection, Label: it.Label, Workflow: ref.Workflow, Step: ref.Step, Attempt: ref.Key, With: w.plan.With,
		Folders: steps.Folders{Dir: abs, Source: filepath.Join(abs, layout.SourceDir), Content: folder.ContentOf(abs), Scratch: w.scratch, Store: store},
		Records: steps.Records{SourceKind: rec.Manifest.Source.Kind, Manifest: rec.ManifestJ, Inventory: inventory, Execution: rec.ExecutionJ},
		Means: steps.Means{Objects: a.recognition.ObjectsOf(rec.Manifest), Limits: set.ArchiveLimits(),
			Profiles: set.Profiles(a.ledger.Root, it.Collection), Log: w.log, Slog: a.ledger.Log, Now: a.ledger.Now},
	}, nil
}

// checkStore answers a *steps.Later when the store at dir is not the workspace's. own is
// the store as the step's parameters name it; "" is the one of the settings.
func (a *Attempts) checkStore(ctx context.Context, dir, own string) error {
	mark, err := a.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	s := mounted.Store{Dir: dir, Mark: mark, Now: a.ledger.Now, Warn: a.ledger.Warn,
		Oldest: func() (layout.ItemID, bool) { return a.oldestDeposit(own) }}
	return s.Check()
}

// oldestDeposit finds the oldest item that was deposited in the store named own. A
// deposit that was reset since counts: its milestone stays reached.
func (a *Attempts) oldestDeposit(own string) (id layout.ItemID, ok bool) {
	for it := range a.index.Loaded().Items() {
		for r := range it.Runs {
			if a.depositedBy(it, &it.Runs[r], own) {
				return it.ID, true
			}
		}
	}
	return "", false
}

func (a *Attempts) depositedBy(it *queue.Item, run *queue.Run, own string) bool {
	for i := range run.Steps {
		step := &run.Plan.Steps[i]
		if named, _ := step.With["store"].(string); !a.Deposits(step) || named != own {
			continue
		}
		if _, reached := it.Milestones[layout.Name(step.Milestone)]; reached || run.Steps[i].Status == state.Completed {
			return true
		}
	}
	return false
}

// Deposits reports whether a robot of the store does the step.
func (a *Attempts) Deposits(s *state.Step) bool {
	return s.Command == nil && a.robots[layout.Name(s.Robot)].Deposits
}
