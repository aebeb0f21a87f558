package act

import (
	"context"
	"errors"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Start puts a workflow on an item that is there, as the acting person, and gives
// its numbered name. notBefore may be zero.
func (ac *Acts) Start(ctx context.Context, id layout.ItemID, workflow string, notBefore time.Time) (string, error) {
	f, skip, err := ac.settings.Startable(workflow)
	if err != nil {
		return "", err
	}
	return ac.ledger.Start(ctx, id, f, skip, notBefore, "", ac.who)
}

// Deactivate takes a workflow of an item out of all queues; workflow is
// accession, its latest run, or accession.1.
func (ac *Acts) Deactivate(ctx context.Context, id layout.ItemID, workflow, text string) (state.Transition, error) {
	key, err := ac.ledger.IntentKey()
	if err != nil {
		return state.Transition{}, err
	}
	return ac.flow(ctx, id, workflow, text, func(name string, _ *ledger.Record) (state.Event, error) {
		return state.Deactivate{Key: key, Workflow: name, At: ac.ledger.Now(), By: ac.who.Agent, Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage)}, nil
	}, nil)
}

// Activate lets a workflow go on that was taken out of the queues, or stopped by
// an internal error.
func (ac *Acts) Activate(ctx context.Context, id layout.ItemID, workflow, text string) (state.Transition, error) {
	return ac.flow(ctx, id, workflow, text, func(name string, _ *ledger.Record) (state.Event, error) {
		return state.Activate{Key: ac.ledger.IntentKey, Workflow: name, At: ac.ledger.Now(), By: ac.who.Agent, Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage)}, nil
	}, nil)
}

// Migrate moves a workflow of an item to the definition in force.
func (ac *Acts) Migrate(ctx context.Context, id layout.ItemID, workflow, text string) (state.Transition, error) {
	base, _ := state.Instance(workflow)
	f := ac.settings.Current().Workflows[base]
	if f == nil {
		return state.Transition{}, ledger.NoWorkflow(base)
	}
	return ac.flow(ctx, id, workflow, text, func(name string, rec *ledger.Record) (state.Event, error) {
		return state.Migrate{Key: ac.ledger.IntentKey, Workflow: name, To: f.Def, At: ac.ledger.Now(), By: ac.who.Agent,
			Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage), Skip: ac.settings.NotAskedOf(rec, f.Def)}, nil
	}, f)
}

// Movable lists the workflows of an item that are not done and run by another
// definition than the one in force.
func (ac *Acts) Movable(ctx context.Context, id layout.ItemID) ([]string, error) {
	if err := errors.Join(ac.guard.LookAtFew(ctx), ac.guard.Look(ctx, id)); err != nil {
		return nil, err
	}
	_, rec, err := ac.ledger.ReadTip(id, "")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range rec.Execution.Names() {
		w := rec.Execution.Workflows[name]
		if f := ac.settings.Current().Workflows[w.Name]; f != nil && f.Def.Digest != w.Digest && w.Status != state.Completed {
			names = append(names, name)
		}
	}
	return names, nil
}

// flow makes an event happen to a whole workflow of an item. to is the definition
// it is moved to, if it is.
func (ac *Acts) flow(ctx context.Context, id layout.ItemID, workflow, text string,
	event func(name string, rec *ledger.Record) (state.Event, error), to *ledger.Definition,
) (state.Transition, error) {
	var tr state.Transition
	err := ac.ledger.Transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
		rec, err := ac.ledger.Read(r, id, "")
		if err != nil {
			return nil, err
		}
		name, err := ac.ledger.Resolve(rec, ledger.StepRef{Item: id, Workflow: workflow})
		if err != nil {
			return nil, err
		}
		plan, err := ac.ledger.PinnedPlan(r, rec.Execution.Workflows[name].Digest)
		if err != nil {
			return nil, err
		}
		ev, err := event(name, rec)
		if err != nil {
			return nil, err
		}
		if tr, err = state.Apply(rec.Execution, plan, ev); err != nil {
			return nil, err
		}
		files := map[string][]byte{layout.ItemDir(id) + "/" + layout.ExecutionJSON: rec.Execution.Encode()}
		more := []ledger.Trailer{}
		if to != nil {
			more = append(more, ledger.Trailer{"Bagpipe-Definition", to.Def.Digest})
			if err := ledger.Pin(r, to, files); err != nil {
				return nil, err
			}
		}
		who := ac.who
		return &gitstore.Change{Files: files, Author: who.Author,
			Message: who.Sign(ledger.FlowMessage(id, rec.Manifest, flowIntent(ev), tr, text, who.Agent, more...))}, nil
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
