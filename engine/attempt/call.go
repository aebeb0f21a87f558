package attempt

import (
	"context"
	"fmt"
	"path/filepath"

	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/mounted"
	"bagpipe/engine/queue"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// call prepares the attempt's scratch folder and calls the step's robot.
func (w *Work) call(ctx context.Context) (steps.Result, error) {
	e, a := w.e, w.attempt
	w.log = folder.NewStepLog(filepath.Join(e.ledger.Path(layout.ItemDir(a.Item)), filepath.FromSlash(layout.StepLog(a.Step, a.Key))))
	robot, err := w.robot()
	if err != nil {
		return steps.Result{}, err
	}
	if !w.bare() {
		w.scratch = e.folder.ScratchDir(a)
		if err := e.folder.Spares.Take(w.scratch); err != nil {
			return steps.Result{}, err
		}
	}
	c, err := e.newCall(w)
	if err != nil {
		return steps.Result{}, err
	}
	if err := w.verifyDeposited(ctx, c); err != nil {
		return steps.Result{}, err
	}
	if err := w.keepInputs(c); err != nil {
		return steps.Result{}, err
	}
	stop := tellProgress(c)
	defer stop()
	return w.callRobot(ctx, robot, c)
}

// verifyDeposited verifies the source of an item that is deposited, or cleaned up.
func (w *Work) verifyDeposited(ctx context.Context, c *steps.Call) error {
	if !w.e.Deposits(w.plan) {
		return nil
	}
	m, err := layout.DecodeManifest(c.Manifest)
	if err != nil {
		return err
	}
	return w.e.verifySource(ctx, m, c.Inventory)
}

// bare tells whether whoever does the step writes into no scratch folder.
func (w *Work) bare() bool {
	return w.plan.Starts != "" || w.plan.Command == nil && w.e.robots[layout.Name(w.plan.Robot)].Bare
}

// callRobot makes a robot's panic its step's failure.
func (w *Work) callRobot(ctx context.Context, robot steps.Robot, c *steps.Call) (res steps.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = steps.Result{}, steps.SystemFailure("the robot panicked: %v", p)
			w.logPanic(p)
		}
	}()
	return robot.Run(ctx, c)
}

// robot finds who does the step.
func (w *Work) robot() (steps.Robot, error) {
	e, s := w.e, w.plan
	switch b, ok := e.robots[layout.Name(s.Robot)]; {
	case s.Starts != "":
		return steps.Func(w.startNext), nil
	case s.Command != nil:
		return steps.Command(e.folder.ProgramPath(s.Command)), nil
	case ok:
		return b.Robot, nil
	}
	return nil, &steps.Unavailable{Err: fmt.Errorf("this version of bagpipe has no robot %q", s.Robot)}
}

func (at *Attempts) newCall(w *Work) (*steps.Call, error) {
	a, it := w.attempt, w.Entry.Item
	v, err := at.ledger.Store.Known() // the claim is in it
	if err != nil {
		return nil, err
	}
	rec, err := at.ledger.Read(at.ledger.Recent(v, a.Item), a.Item, a.Workflow)
	if err != nil {
		return nil, err
	}
	defer at.ledger.Decoded.Keep(a.Item, rec.ExecutionJ, rec.Execution)
	if w.plan.Starts == "" {
		if err := at.checkBytes(w.ctx, rec); err != nil {
			return nil, err
		}
	}
	dir := layout.ItemDir(a.Item)
	var inventory []byte
	if rec.Manifest.Inventory != nil {
		if inventory, err = ledger.ReadOptional(v, dir+"/"+layout.InventoryJSON); err != nil {
			return nil, err
		}
	}
	abs := at.ledger.Path(dir)
	set := at.settings.Current().Settings
	store := set.StoreDir(at.ledger.Root)
	own, _ := w.plan.With["store"].(string)
	if own != "" {
		store = settings.Below(at.ledger.Root, own)
	}
	if at.Deposits(w.plan) {
		if err := at.checkStore(w.ctx, store, own); err != nil {
			return nil, err
		}
	}
	return &steps.Call{
		Item: a.Item, Collection: it.Collection, Label: it.Label,
		Workflow: a.Workflow, Step: a.Step, Attempt: a.Key,
		Dir: abs, Source: filepath.Join(abs, layout.SourceDir), Content: folder.ContentOf(abs),
		Scratch: w.scratch, Store: store,
		SourceKind: rec.Manifest.Source.Kind, With: w.plan.With,
		Manifest: rec.ManifestJ, Inventory: inventory, Execution: rec.ExecutionJ,
		Limits: set.ArchiveLimits(), Profiles: set.Profiles(at.ledger.Root, it.Collection), Log: w.log, Slog: at.ledger.Log, Now: at.ledger.Now,
		Objects: at.recognition.ObjectsOf(rec.Manifest),
	}, nil
}

// checkStore answers a *steps.Later when the store at dir is not the workspace's. own is
// the store as the step's parameters name it; "" is the one of the settings.
func (at *Attempts) checkStore(ctx context.Context, dir, own string) error {
	mark, err := at.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	s := mounted.Store{Dir: dir, Mark: mark, Now: at.ledger.Now, Warn: at.ledger.Warn,
		Oldest: func() (layout.ItemID, bool) { return at.oldestDeposit(own) }}
	return s.Check()
}

// oldestDeposit finds the oldest item that was deposited in the store named own. A step
// that was reset since has reached its milestone all the same.
func (at *Attempts) oldestDeposit(own string) (id layout.ItemID, ok bool) {
	for it := range at.index.Loaded().Items() {
		for r := range it.Runs {
			if at.depositedBy(it, &it.Runs[r], own) {
				return it.ID, true
			}
		}
	}
	return "", false
}

func (at *Attempts) depositedBy(it *queue.Item, run *queue.Run, own string) bool {
	for i := range run.Steps {
		step := &run.Plan.Steps[i]
		if named, _ := step.With["store"].(string); !at.Deposits(step) || named != own {
			continue
		}
		if _, reached := it.Milestones[layout.Name(step.Milestone)]; reached || run.Steps[i].Status == state.Completed {
			return true
		}
	}
	return false
}

// Deposits reports whether a robot of the store does the step.
func (at *Attempts) Deposits(s *state.Step) bool {
	return s.Command == nil && at.robots[layout.Name(s.Robot)].Deposits
}
