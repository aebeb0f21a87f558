package engine

import (
	"context"
	"fmt"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// freeOfDead lets a step wait again that is in progress in an engine that is gone, so
// that a person can end it without waiting for the next run, which would only resume
// what the person is about to decide. It tells whether it did; one that runs is left
// alone.
func (e *Engine) freeOfDead(ctx context.Context, id layout.ItemID, workflow string, step layout.Name) (freed bool, err error) {
	_, rec, err := e.readTip(id, "")
	if err != nil {
		return false, err
	}
	_, s := rec.execution.Find(workflow, step)
	if s == nil {
		return false, nil
	}
	k, a, ok := s.Current()
	if !ok || a.State != state.InProgress || rec.execution.Lost(workflow, step, k) {
		return false, nil
	}
	lives, err := e.seat.Alive(k.Engine)
	if err != nil {
		return false, fmt.Errorf("see whether engine %s lives: %w", k.Engine, err)
	}
	if lives {
		return false, nil
	}
	why := fmt.Sprintf("engine %s (%s) is gone; a person acts on the step", k.Engine, a.Runner)
	if err := e.recoverAttempt(ctx, &Attempt{Item: id, Workflow: workflow, Step: step, Key: k}, why); err != nil {
		return false, fmt.Errorf("recover item %s: %w", id.Short(), err)
	}
	return true, nil
}

// freeAfter is freeOfDead of every step that needs one.
func (e *Engine) freeAfter(ctx context.Context, id layout.ItemID, workflow string, step layout.Name) error {
	_, rec, err := e.readTip(id, workflow)
	if err != nil {
		return err
	}
	for i := range rec.plan.Steps {
		if rec.plan.Steps[i].Name != string(step) {
			continue
		}
		for _, n := range rec.plan.After(i) {
			if _, err := e.freeOfDead(ctx, id, workflow, layout.Name(rec.plan.Steps[n].Name)); err != nil {
				return err
			}
		}
	}
	return nil
}
