package act

import (
	"context"
	"errors"
	"slices"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Cancel ends what is done, or is about to be, on an item: of one step where ref names it,
// of one workflow, or of all. What runs is told by an intent, and its engine ends it; what
// could start now, or is to be tried again, fails. The transitions are those of the steps;
// it is refused when there is none.
func (ac *Acts) Cancel(ctx context.Context, ref ledger.StepRef, text string) (done []state.Transition, err error) {
	if err := errors.Join(ac.guard.LookAtFew(ctx), ac.guard.Look(ctx, ref.Item)); err != nil {
		return nil, err
	}
	if ref.Step != "" {
		if ref.Workflow, err = ac.workflowOf(ctx, ref); err != nil {
			return nil, err
		}
	}
	_, rec, err := ac.ledger.ReadTip(ref.Item, "")
	if err != nil {
		return nil, err
	}
	for _, workflow := range rec.Execution.Names() {
		if ref.Workflow != "" && ref.Workflow != workflow && ref.Workflow != rec.Execution.Workflows[workflow].Name {
			continue
		}
		some, err := ac.cancelIn(ctx, ref.Item, workflow, ref.Step, text)
		done = append(done, some...)
		if err != nil {
			return done, err
		}
	}
	if len(done) == 0 {
		return nil, &state.IllegalError{Event: "cancel", Item: ref.Item, Workflow: ref.Workflow, Step: ref.Step, Reason: "nothing of it runs, or is about to"}
	}
	return done, nil
}

// cancelIn cancels in one workflow; of the step alone, unless it is "".
func (ac *Acts) cancelIn(ctx context.Context, id layout.ItemID, workflow string, only layout.Name, text string) (done []state.Transition, err error) {
	_, rec, err := ac.ledger.ReadTip(id, workflow)
	if err != nil {
		return nil, err
	}
	for i := range rec.Plan.Steps {
		step := layout.Name(rec.Plan.Steps[i].Name)
		if only != "" && only != step || i == 0 {
			continue
		}
		if _, err := ac.freeOfDead(ctx, id, workflow, step); err != nil {
			return done, err
		}
		tr, err := ac.cancelStep(ctx, id, workflow, step, text)
		var illegal *state.IllegalError
		switch {
		case err == nil:
			done = append(done, tr)
		case only != "" || !errors.As(err, &illegal):
			return done, err
		}
	}
	return done, nil
}

// cancelStep cancels a step that runs; one that could start, or waits for its next try,
// fails by the person.
func (ac *Acts) cancelStep(ctx context.Context, id layout.ItemID, workflow string, step layout.Name, text string) (state.Transition, error) {
	key, err := ac.ledger.IntentKey()
	if err != nil {
		return state.Transition{}, err
	}
	text = ledger.Clip(ledger.Printable(text), ledger.MaxMessage)
	return ac.ledger.Step(ctx, id, workflow, ac.who, text, func(rec *ledger.Record) (state.Event, error) {
		now := ac.ledger.Now()
		x := rec.Execution
		x.Compute(workflow, rec.Plan)
		if s := x.Workflows[workflow].Steps[step]; s != nil && s.Status == state.Waiting {
			i := slices.IndexFunc(rec.Plan.Steps, func(s state.Step) bool { return s.Name == string(step) })
			if why := x.Blocked(workflow, rec.Plan, i, now); why != nil && why.Code != "retry" {
				return nil, &state.IllegalError{Event: "cancel", Item: id, Workflow: workflow, Step: step, Reason: why.Text}
			}
			return state.Decide{Workflow: workflow, Step: step, Attempt: x.NextKey(step, ac.ledger.ID), State: state.Failed,
				At: now, By: ac.who.Agent, Message: state.Intent{By: ac.who.Agent, Text: text}.CancelText()}, nil
		}
		return state.Cancel{Key: key, Workflow: workflow, Step: step, At: now, By: ac.who.Agent, Text: text}, nil
	}, nil)
}
