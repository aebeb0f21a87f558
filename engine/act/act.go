package act

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// workflowOf resolves ref at the tip.
func (ac *Acts) workflowOf(ctx context.Context, ref ledger.StepRef) (string, error) {
	if err := errors.Join(ac.guard.LookAtFew(ctx), ac.guard.Look(ctx, ref.Item)); err != nil {
		return "", err
	}
	_, rec, err := ac.ledger.ReadTip(ref.Item, "")
	if err != nil {
		return "", err
	}
	return ac.ledger.Resolve(rec, ref)
}

// Decide completes, skips or fails a step as the acting person; milestones are
// reached besides the step's own.
func (ac *Acts) Decide(ctx context.Context, ref ledger.StepRef, to state.Status, text string, milestones ...layout.Name) (state.Transition, error) {
	workflow, err := ac.workflowOf(ctx, ref)
	if err != nil {
		return state.Transition{}, err
	}
	if _, err := ac.freeOfDead(ctx, ref.Item, workflow, ref.Step); err != nil {
		return state.Transition{}, err
	}
	return ac.ledger.Step(ctx, ref.Item, workflow, ac.who, text, func(rec *ledger.Record) (state.Event, error) {
		why := text
		if step := rec.Plan.Step(ref.Step); step != nil && to == state.Skipped {
			why = step.SkipMessage(text)
		}
		return state.Decide{Workflow: workflow, Step: ref.Step, Attempt: rec.Execution.NextKey(ref.Step, ac.ledger.ID), State: to,
			At: ac.ledger.Now(), By: ac.who.Agent, Message: ledger.Clip(ledger.Printable(why), ledger.MaxMessage), Milestones: milestones}, nil
	}, noteQuality)
}

// noteQuality takes the decision into the item's quality, where the failure that it is of stands.
func noteQuality(rec *ledger.Record, files map[string][]byte) error {
	q, err := ledger.ReadQuality(rec.At, rec.Execution.Item)
	if err != nil || q == nil || !ledger.NoteDecisions(q, rec.Execution) {
		return err
	}
	return ledger.PutQuality(*q, rec.Committed.Manifest, files)
}

// Retry lets a failed step be tried again.
func (ac *Acts) Retry(ctx context.Context, ref ledger.StepRef, text string) (state.Transition, error) {
	workflow, err := ac.workflowOf(ctx, ref)
	if err != nil {
		return state.Transition{}, err
	}
	key, err := ac.ledger.IntentKey()
	if err != nil {
		return state.Transition{}, err
	}
	return ac.ledger.Step(ctx, ref.Item, workflow, ac.who, text, func(*ledger.Record) (state.Event, error) {
		return state.Retry{Key: key, Workflow: workflow, Step: ref.Step, At: ac.ledger.Now(), By: ac.who.Agent, Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage)}, nil
	}, nil)
}

// Hold keeps every step of an item from starting; what runs already finishes.
func (ac *Acts) Hold(ctx context.Context, id layout.ItemID, text string) error {
	key, err := ac.ledger.IntentKey()
	if err != nil {
		return err
	}
	return ac.intend(ctx, id, state.HoldIntent, "held", text,
		state.Hold{Key: key, At: ac.ledger.Now(), By: ac.who.Agent, Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage)})
}

// Release ends every hold on an item.
func (ac *Acts) Release(ctx context.Context, id layout.ItemID, text string) error {
	return ac.intend(ctx, id, state.ReleaseIntent, "released", text,
		state.Release{Key: ac.ledger.IntentKey, At: ac.ledger.Now(), By: ac.who.Agent, Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage)})
}

// Own gives an item to a site; takeOver, from another site, with a reason.
func (ac *Acts) Own(ctx context.Context, id layout.ItemID, site layout.Name, takeOver bool, text string) error {
	v, err := ac.ledger.Store.Tip()
	if err != nil {
		return err
	}
	if known, err := ledger.ReadOptional(v, layout.SitePath(site)); err != nil || known == nil {
		unknown := ledger.UnknownSite(v, site)
		if err == nil {
			unknown = fmt.Errorf("%w; a site is known here once it has synced, and this workspace after it", unknown)
		}
		return errors.Join(unknown, err)
	}
	return ac.intend(ctx, id, state.OwnIntent, "given to "+string(site), text,
		state.Own{Key: ac.ledger.IntentKey, Site: site, TakeOver: takeOver, At: ac.ledger.Now(), By: ac.who.Agent, Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage)})
}

func (ac *Acts) intend(ctx context.Context, id layout.ItemID, kind, to, text string, ev state.Event) error {
	if err := ac.guard.LookAtFew(ctx); err != nil {
		return err
	}
	err := ac.ledger.Transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
		rec, err := ac.ledger.Read(r, id, "")
		if err != nil {
			return nil, err
		}
		if keys, _ := layout.Conflicts(rec.Committed.Manifest); kind == state.ReleaseIntent && len(keys) > 0 {
			return nil, fault.New(fault.Refused, fmt.Sprintf("item %s goes on once somebody has chosen what holds of it: two histories gave other values to %s", id.Short(), strings.Join(keys, ", ")),
				fault.Remedy{Verb: fault.ShowConflict, Item: id})
		}
		if _, err := state.Apply(rec.Execution, nil, ev); err != nil {
			return nil, err
		}
		who := ac.who
		return &gitstore.Change{
			Files:   map[string][]byte{layout.ItemDir(id) + "/" + layout.ExecutionJSON: rec.Execution.Encode()},
			Message: who.Sign(ledger.IntentMessage(id, rec.Manifest, kind, to, text, who.Agent)),
			Author:  who.Author,
		}, nil
	})
	return err
}
