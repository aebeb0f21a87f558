package engine

import (
	"context"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// SeenStep is a step of an item as somebody saw it.
type SeenStep struct {
	StepRef
	Status  state.Status      // "": was not looked at
	Attempt layout.AttemptKey // zero: was not looked at
}

// Reset lets a step be done anew, whatever became of it; with after, also every
// step of its workflow that needs it. It is refused when the step is not as seen
// any more.
func (e *Engine) Reset(ctx context.Context, seen SeenStep, after bool, text string) (state.Transition, error) {
	workflow, err := e.workflowOf(ctx, seen.StepRef)
	if err != nil {
		return state.Transition{}, err
	}
	return e.step(ctx, seen.Item, workflow, e.byPerson(), text, func(*record) (state.Event, error) {
		return state.Reset{Key: e.intentKey, Workflow: workflow, Step: seen.Step, After: after, At: e.o.Now(), By: e.person(),
			Text: clip(printable(text), maxMessage), Seen: seen.Status, Attempt: seen.Attempt}, nil
	}, nil)
}

// Steps lists the steps that fit f, whose Step and Status must be set, as they
// are; of several runs of a workflow on an item, the latest. Load must have been
// called.
func (e *Engine) Steps(f Filter) []SeenStep {
	var seen []SeenStep
	for it := range e.index.Items() {
		if it.Broken != "" || !f.fits(it) {
			continue
		}
		for r := len(it.Runs) - 1; r >= 0; r-- {
			run := &it.Runs[r]
			if !f.fitsRun(run) {
				continue
			}
			for i := range run.Steps {
				if run.Plan.Steps[i].Name == string(f.Step) {
					seen = append(seen, SeenStep{StepRef{it.ID, run.Name, f.Step}, run.Steps[i].Status, run.Steps[i].Current})
				}
			}
			break
		}
	}
	return seen
}
