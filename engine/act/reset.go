package act

import (
	"context"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// SeenStep is a step of an item as somebody saw it.
type SeenStep struct {
	ledger.StepRef
	Status  state.Status      // "": was not looked at
	Attempt layout.AttemptKey // zero: was not looked at
	Early   bool              // it waits, and the item has not come as far: nobody can end it yet
}

// Reset lets a step be done anew, whatever became of it; with after, also every
// step of its workflow that needs it. It is refused when the step is not as seen
// any more. A step whose engine is gone is taken from it first.
func (ac *Acts) Reset(ctx context.Context, seen SeenStep, after bool, text string) (state.Transition, error) {
	workflow, err := ac.workflowOf(ctx, seen.StepRef)
	if err != nil {
		return state.Transition{}, err
	}
	freed, err := ac.freeOfDead(ctx, seen.Item, workflow, seen.Step)
	if err == nil && after {
		err = ac.freeAfter(ctx, seen.Item, workflow, seen.Step)
	}
	if err != nil {
		return state.Transition{}, err
	}
	tr, err := ac.ledger.Step(ctx, seen.Item, workflow, ac.who, text, func(*ledger.Record) (state.Event, error) {
		return state.Reset{Key: ac.ledger.IntentKey, Workflow: workflow, Step: seen.Step, After: after, At: ac.ledger.Now(), By: ac.who.Agent,
			Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage), Seen: seen.Status, Attempt: seen.Attempt}, nil
	}, nil)
	if freed {
		tr.From = state.InProgress // as the person saw it
	}
	return tr, err
}
