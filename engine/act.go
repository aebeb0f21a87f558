package engine

import (
	"context"
	"errors"
	"fmt"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// StepRef names a step of an item; Workflow may be "" when only one instance on
// the item has the step, or when the latest one is meant.
type StepRef struct {
	Item     layout.ItemID
	Workflow string
	Step     layout.Name
}

// resolve fills in the workflow instance, which must not be over with a version that
// has been replaced.
func (e *Engine) resolve(rec *record, ref StepRef) (string, error) {
	name, err := e.instance(rec, ref)
	if err != nil {
		return "", err
	}
	if why := ofBefore(rec, name); why != "" {
		return "", errors.New(why)
	}
	return name, nil
}

func (e *Engine) instance(rec *record, ref StepRef) (string, error) {
	if ref.Workflow != "" {
		if rec.execution.Workflows[ref.Workflow] != nil {
			return ref.Workflow, nil
		}
		if latest := rec.execution.Latest(ref.Workflow); latest != "" {
			return latest, nil
		}
		return "", fmt.Errorf("item %s has no workflow %s", ref.Item.Short(), ref.Workflow)
	}
	found := ""
	for _, name := range rec.execution.Names() {
		if _, s := rec.execution.Find(name, ref.Step); s != nil {
			found = name
		}
	}
	if found == "" {
		return "", fmt.Errorf("item %s has no step %s; bagpipe show %s lists them", ref.Item.Short(), ref.Step, ref.Item.Short())
	}
	return found, nil
}

// workflowOf resolves ref at the tip.
func (e *Engine) workflowOf(ctx context.Context, ref StepRef) (string, error) {
	if err := errors.Join(e.lookAtFew(ctx), e.look(ctx, ref.Item)); err != nil {
		return "", err
	}
	_, rec, err := e.readTip(ref.Item, "")
	if err != nil {
		return "", err
	}
	return e.resolve(rec, ref)
}

// Decide completes, skips or fails a step as the acting person; milestones are
// reached besides the step's own.
func (e *Engine) Decide(ctx context.Context, ref StepRef, to state.Status, text string, milestones ...layout.Name) (state.Transition, error) {
	workflow, err := e.workflowOf(ctx, ref)
	if err != nil {
		return state.Transition{}, err
	}
	if _, err := e.freeOfDead(ctx, ref.Item, workflow, ref.Step); err != nil {
		return state.Transition{}, err
	}
	return e.step(ctx, ref.Item, workflow, e.byPerson(), text, func(rec *record) (state.Event, error) {
		return state.Decide{Workflow: workflow, Step: ref.Step, Attempt: rec.execution.NextKey(ref.Step, e.id), State: to,
			At: e.o.Now(), By: e.person(), Message: clip(printable(text), maxMessage), Milestones: milestones}, nil
	}, nil)
}

// Retry lets a failed step be tried again.
func (e *Engine) Retry(ctx context.Context, ref StepRef, text string) (state.Transition, error) {
	workflow, err := e.workflowOf(ctx, ref)
	if err != nil {
		return state.Transition{}, err
	}
	key, err := e.intentKey()
	if err != nil {
		return state.Transition{}, err
	}
	return e.step(ctx, ref.Item, workflow, e.byPerson(), text, func(*record) (state.Event, error) {
		return state.Retry{Key: key, Workflow: workflow, Step: ref.Step, At: e.o.Now(), By: e.person(), Text: clip(printable(text), maxMessage)}, nil
	}, nil)
}

// Hold keeps every step of an item from starting; what runs already finishes.
func (e *Engine) Hold(ctx context.Context, id layout.ItemID, text string) error {
	key, err := e.intentKey()
	if err != nil {
		return err
	}
	return e.intend(ctx, id, state.HoldIntent, "held", text,
		state.Hold{Key: key, At: e.o.Now(), By: e.person(), Text: clip(printable(text), maxMessage)})
}

// Release ends every hold on an item.
func (e *Engine) Release(ctx context.Context, id layout.ItemID, text string) error {
	return e.intend(ctx, id, state.ReleaseIntent, "released", text,
		state.Release{Key: e.intentKey, At: e.o.Now(), By: e.person(), Text: clip(printable(text), maxMessage)})
}

func (e *Engine) intend(ctx context.Context, id layout.ItemID, kind, to, text string, ev state.Event) error {
	if err := e.lookAtFew(ctx); err != nil {
		return err
	}
	err := e.transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
		rec, err := e.read(r, id, "")
		if err != nil {
			return nil, err
		}
		if _, err := state.Apply(rec.execution, nil, ev); err != nil {
			return nil, err
		}
		who := e.byPerson()
		return &gitstore.Change{
			Files:   map[string][]byte{layout.ItemDir(id) + "/" + layout.ExecutionJSON: rec.execution.Encode()},
			Message: intentMessage(id, rec.manifest, kind, to, text, who.agent),
			Author:  who.author,
		}, nil
	})
	return err
}

// IsRefused tells whether err is the state's or the item's answer rather than a
// fault of the machine.
func IsRefused(err error) bool {
	var illegal *state.IllegalError
	var none *NoItemError
	return errors.As(err, &illegal) || errors.As(err, &none)
}
