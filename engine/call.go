package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/mounted"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// call prepares the attempt's scratch folder and calls the step's robot.
func (w *work) call(ctx context.Context) (steps.Result, error) {
	e, a := w.e, w.attempt
	w.log = newStepLog(filepath.Join(e.path(layout.ItemDir(a.Item)), filepath.FromSlash(layout.StepLog(a.Step, a.Key))))
	robot, err := w.robot()
	if err != nil {
		return steps.Result{}, err
	}
	if !w.bare() {
		w.scratch = e.scratchDir(a)
		if err := e.spares.take(w.scratch); err != nil {
			return steps.Result{}, err
		}
	}
	c, err := e.newCall(w)
	if err != nil {
		return steps.Result{}, err
	}
	if err := w.keepInputs(c); err != nil {
		return steps.Result{}, err
	}
	stop := tellProgress(c)
	defer stop()
	return w.callRobot(ctx, robot, c)
}

// bare tells whether whoever does the step writes into no scratch folder.
func (w *work) bare() bool {
	return w.plan.Starts != "" || w.plan.Command == nil && w.e.o.Robots[layout.Name(w.plan.Robot)].Bare
}

// callRobot makes a robot's panic its step's failure.
func (w *work) callRobot(ctx context.Context, robot steps.Robot, c *steps.Call) (res steps.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = steps.Result{}, steps.SystemFailure("the robot panicked: %v", p)
			w.logPanic(p)
		}
	}()
	return robot.Run(ctx, c)
}

// robot finds who does the step.
func (w *work) robot() (steps.Robot, error) {
	e, s := w.e, w.plan
	switch b, ok := e.o.Robots[layout.Name(s.Robot)]; {
	case s.Starts != "":
		return steps.Func(w.startNext), nil
	case s.Command != nil:
		return steps.Command(e.programPath(s.Command)), nil
	case ok:
		return b.Robot, nil
	}
	return nil, &steps.Unavailable{Err: fmt.Errorf("this version of bagpipe has no robot %q", s.Robot)}
}

// programPath takes a program named by a relative path with a slash from the
// workspace, as its scratch folder is empty; one without a slash is looked for in
// PATH.
func (e *Engine) programPath(argv []string) []string {
	if !strings.Contains(argv[0], "/") || filepath.IsAbs(argv[0]) {
		return argv
	}
	return append([]string{e.path(argv[0])}, argv[1:]...)
}

// scratchDir is an attempt's own folder, below its engine's, so that whoever
// finds it knows whether its owner lives.
func (e *Engine) scratchDir(a *Attempt) string {
	return filepath.Join(e.path(layout.ScratchDir), string(a.Key.Engine), fmt.Sprintf("%s.%s.%s.%s", a.Item, a.Workflow, a.Step, a.Key))
}

func (e *Engine) newCall(w *work) (*steps.Call, error) {
	a, it := w.attempt, w.entry.Item
	v, err := e.store.Known() // the claim is in it
	if err != nil {
		return nil, err
	}
	rec, err := e.read(e.recent(v, a.Item), a.Item, a.Workflow)
	if err != nil {
		return nil, err
	}
	defer e.decoded.keep(a.Item, rec.executionJ, rec.execution)
	if w.plan.Starts == "" {
		if err := e.checkBytes(w.ctx, rec); err != nil {
			return nil, err
		}
	}
	dir := layout.ItemDir(a.Item)
	var inventory []byte
	if rec.manifest.Inventory != nil {
		if inventory, err = readOptional(v, dir+"/"+layout.InventoryJSON); err != nil {
			return nil, err
		}
	}
	abs := e.path(dir)
	set := e.current().settings
	store := set.storeDir(e.root)
	own, _ := w.plan.With["store"].(string)
	if own != "" {
		store = below(e.root, own)
	}
	if e.deposits(w.plan) {
		if err := e.checkStore(w.ctx, store, own); err != nil {
			return nil, err
		}
	}
	return &steps.Call{
		Item: a.Item, Collection: it.Collection, Label: it.Label,
		Workflow: a.Workflow, Step: a.Step, Attempt: a.Key,
		Dir: abs, Source: filepath.Join(abs, layout.SourceDir), Content: contentOf(abs),
		Scratch: w.scratch, Store: store,
		SourceKind: rec.manifest.Source.Kind, With: w.plan.With,
		Manifest: rec.manifestJ, Inventory: inventory, Execution: rec.executionJ,
		Limits: set.limits(), Profiles: set.profiles(e.root, it.Collection), Log: w.log, Slog: e.o.Log, Now: e.o.Now,
		Objects: e.objectsOf(rec.manifest),
	}, nil
}

// checkStore answers a *steps.Later when the store at dir is not the workspace's. own is
// the store as the step's parameters name it; "" is the one of the settings.
func (e *Engine) checkStore(ctx context.Context, dir, own string) error {
	mark, err := e.mark(ctx)
	if err != nil {
		return err
	}
	s := mounted.Store{Dir: dir, Mark: mark, Now: e.o.Now, Warn: e.o.Warn,
		Oldest: func() (layout.ItemID, bool) { return e.oldestDeposit(own) }}
	return s.Check()
}

// mark gives the workspace's mark, drawn and committed where an earlier version made the
// workspace.
func (e *Engine) mark(ctx context.Context) (layout.Mark, error) {
	v, err := e.store.Tip()
	if err != nil {
		return "", err
	}
	w, err := readWorkspace(v)
	if err != nil || w.Mark != "" {
		return w.Mark, err
	}
	drawn, err := layout.NewMark(e.o.Random)
	if err != nil {
		return "", err
	}
	who := e.byEngine()
	_, err = e.store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		if w, err = readWorkspace(r); err != nil || w.Mark != "" {
			return nil, err
		}
		w.Mark = drawn
		data, err := w.Encode()
		if err != nil {
			return nil, err
		}
		return &gitstore.Change{Files: map[string][]byte{layout.WorkspaceFile: data}, Author: who.author,
			Message: message("control: marked the workspace", "", []trailer{{"Bagpipe-Agent", who.agent}})}, nil
	})
	return w.Mark, err
}

func readWorkspace(r gitstore.Reader) (w layout.Workspace, err error) {
	data, err := readOptional(r, layout.WorkspaceFile)
	if err != nil || data == nil {
		return w, err
	}
	return layout.DecodeWorkspace(data)
}

// oldestDeposit finds the oldest item that was deposited in the store named own. A step
// that was reset since has reached its milestone all the same.
func (e *Engine) oldestDeposit(own string) (id layout.ItemID, ok bool) {
	for it := range e.index.Items() {
		for r := range it.Runs {
			if e.depositedBy(it, &it.Runs[r], own) {
				return it.ID, true
			}
		}
	}
	return "", false
}

func (e *Engine) depositedBy(it *queue.Item, run *queue.Run, own string) bool {
	for i := range run.Steps {
		step := &run.Plan.Steps[i]
		if named, _ := step.With["store"].(string); !e.deposits(step) || named != own {
			continue
		}
		if _, reached := it.Milestones[layout.Name(step.Milestone)]; reached || run.Steps[i].Status == state.Completed {
			return true
		}
	}
	return false
}

// deposits reports whether a robot of the store does the step.
func (e *Engine) deposits(s *state.Step) bool {
	return s.Command == nil && e.o.Robots[layout.Name(s.Robot)].Deposits
}
