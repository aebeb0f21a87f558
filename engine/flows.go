package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// Start puts a workflow on an item that is there, as the acting person, and gives
// its numbered name. notBefore may be zero.
func (e *Engine) Start(ctx context.Context, id layout.ItemID, workflow string, notBefore time.Time) (string, error) {
	f, skip, err := e.startable(workflow)
	if err != nil {
		return "", err
	}
	return e.start(ctx, id, f, skip, notBefore, "", e.byPerson())
}

// start puts a definition on an item. skip lists the steps that are not asked for.
func (e *Engine) start(ctx context.Context, id layout.ItemID, f *workflowFile, skip func(*record) map[layout.Name]string, notBefore time.Time, startedBy string, who actor) (instance string, err error) {
	workflow := f.def.Name
	err = e.transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
		rec, err := e.read(r, id, "")
		if err != nil {
			return nil, err
		}
		x := rec.execution
		_, last := state.Instance(x.Latest(workflow))
		instance = fmt.Sprintf("%s.%d", workflow, last+1)
		ev := state.Start{Workflow: instance, Attempt: x.NextKey(layout.Name(f.def.Steps[0].Name), e.id), At: e.o.Now(), NotBefore: notBefore,
			Skip: skip(rec), StartedBy: startedBy, Runner: e.runner()}
		if startedBy == "" {
			ev.Runner, ev.By = "", e.person()
		}
		tr, err := state.Apply(x, f.def, ev)
		if err != nil {
			return nil, err
		}
		files := map[string][]byte{layout.ItemDir(id) + "/" + layout.ExecutionJSON: x.Encode()}
		if err := pin(r, f, files); err != nil {
			return nil, err
		}
		text := ""
		if startedBy != "" {
			text = "started by " + startedBy
		}
		return &gitstore.Change{Files: files, Author: who.author,
			Message: stepMessage(id, rec.manifest, tr, text, who.agent, trailer{"Bagpipe-Definition", f.def.Digest})}, nil
	})
	return instance, err
}

// pin adds the definition to a change, unless it has been committed before; a push
// may have put anything there.
func pin(r gitstore.Reader, f *workflowFile, files map[string][]byte) error {
	p := layout.PinnedPath(f.def.Digest)
	pinned, err := readOptional(r, p)
	if err == nil && (pinned == nil || digestOf(pinned) != f.def.Digest) {
		files[p] = f.data
	}
	return err
}

// startable finds the definition in force of a workflow, and what its start skips.
func (e *Engine) startable(workflow string) (f *workflowFile, skip func(*record) map[layout.Name]string, err error) {
	if f = e.current().workflows[workflow]; f == nil {
		return nil, nil, fmt.Errorf("no workflow %q in %s/; bagpipe workflow list shows them", workflow, layout.WorkflowsDir)
	}
	return f, func(rec *record) map[layout.Name]string { return e.notAskedOf(rec, f.def) }, nil
}

// notAskedOf lists the steps on request that the item's collection does not ask
// for.
func (e *Engine) notAskedOf(rec *record, d *state.Definition) map[layout.Name]string {
	c := rec.manifest.Collection
	return notAsked(d, c, e.current().settings.collection(c).Approvals)
}

// startNext is the robot of a step with starts: it starts the workflow, once.
func (w *work) startNext(ctx context.Context, c *steps.Call) (steps.Result, error) {
	e, next := w.e, w.plan.Starts
	_, rec, err := e.readTip(c.Item, "")
	if err != nil {
		return steps.Result{}, err
	}
	x := rec.execution
	if name := x.StartedFrom(c.Workflow, c.Step); name != "" {
		return steps.Result{Message: name + " was started by this step before"}, nil
	}
	if chain := x.Starters(c.Workflow); slices.Contains(chain, next) {
		slices.Reverse(chain)
		return steps.Result{}, steps.SystemFailure("workflow %s would lead to itself: %s → %s", next, strings.Join(chain, " → "), next)
	}
	f, skip, err := e.startable(next)
	if err != nil {
		return steps.Result{}, steps.SystemFailure("%w", err)
	}
	name, err := e.start(ctx, c.Item, f, skip, time.Time{}, c.Workflow+"/"+string(c.Step), e.byRobot(c.Step))
	if err != nil {
		return steps.Result{}, steps.SystemFailure("%w", err)
	}
	return steps.Result{Message: name + " started"}, nil
}

// Deactivate takes a workflow of an item out of all queues; workflow is
// accession, its latest run, or accession.1.
func (e *Engine) Deactivate(ctx context.Context, id layout.ItemID, workflow, text string) (state.Transition, error) {
	key, err := e.intentKey()
	if err != nil {
		return state.Transition{}, err
	}
	return e.flow(ctx, id, workflow, text, func(name string, _ *record) (state.Event, error) {
		return state.Deactivate{Key: key, Workflow: name, At: e.o.Now(), By: e.person(), Text: clip(printable(text), maxMessage)}, nil
	}, nil)
}

// Activate lets a workflow go on that was taken out of the queues, or stopped by
// an internal error.
func (e *Engine) Activate(ctx context.Context, id layout.ItemID, workflow, text string) (state.Transition, error) {
	return e.flow(ctx, id, workflow, text, func(name string, _ *record) (state.Event, error) {
		return state.Activate{Key: e.intentKey, Workflow: name, At: e.o.Now(), By: e.person(), Text: clip(printable(text), maxMessage)}, nil
	}, nil)
}

// Migrate moves a workflow of an item to the definition in force.
func (e *Engine) Migrate(ctx context.Context, id layout.ItemID, workflow, text string) (state.Transition, error) {
	base, _ := state.Instance(workflow)
	f := e.current().workflows[base]
	if f == nil {
		return state.Transition{}, fmt.Errorf("no workflow %q in %s/; bagpipe workflow list shows them", base, layout.WorkflowsDir)
	}
	return e.flow(ctx, id, workflow, text, func(name string, rec *record) (state.Event, error) {
		return state.Migrate{Key: e.intentKey, Workflow: name, To: f.def, At: e.o.Now(), By: e.person(),
			Text: clip(printable(text), maxMessage), Skip: e.notAskedOf(rec, f.def)}, nil
	}, f)
}

// Movable lists the workflows of an item that are not done and run by another
// definition than the one in force.
func (e *Engine) Movable(ctx context.Context, id layout.ItemID) ([]string, error) {
	if err := errors.Join(e.lookAtFew(ctx), e.look(ctx, id)); err != nil {
		return nil, err
	}
	_, rec, err := e.readTip(id, "")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range rec.execution.Names() {
		w := rec.execution.Workflows[name]
		if f := e.current().workflows[w.Name]; f != nil && f.def.Digest != w.Digest && w.Status != state.Completed {
			names = append(names, name)
		}
	}
	return names, nil
}

// flow makes an event happen to a whole workflow of an item. to is the definition
// it is moved to, if it is.
func (e *Engine) flow(ctx context.Context, id layout.ItemID, workflow, text string,
	event func(name string, rec *record) (state.Event, error), to *workflowFile,
) (state.Transition, error) {
	var tr state.Transition
	err := e.transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
		rec, err := e.read(r, id, "")
		if err != nil {
			return nil, err
		}
		name, err := e.resolve(rec, StepRef{Item: id, Workflow: workflow})
		if err != nil {
			return nil, err
		}
		plan, err := e.pinnedPlan(r, rec.execution.Workflows[name].Digest)
		if err != nil {
			return nil, err
		}
		ev, err := event(name, rec)
		if err != nil {
			return nil, err
		}
		if tr, err = state.Apply(rec.execution, plan, ev); err != nil {
			return nil, err
		}
		files := map[string][]byte{layout.ItemDir(id) + "/" + layout.ExecutionJSON: rec.execution.Encode()}
		more := []trailer{}
		if to != nil {
			more = append(more, trailer{"Bagpipe-Definition", to.def.Digest})
			if err := pin(r, to, files); err != nil {
				return nil, err
			}
		}
		who := e.byPerson()
		return &gitstore.Change{Files: files, Author: who.author,
			Message: flowMessage(id, rec.manifest, flowIntent(ev), tr, text, who.agent, more...)}, nil
	})
	return tr, err
}

func flowIntent(ev state.Event) string {
	switch ev.(type) {
	case state.Deactivate:
		return state.DeactivateIntent
	case state.Activate:
		return state.ActivateIntent
	}
	return state.MigrateIntent
}
