package act

import (
	"context"
	"fmt"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// freeOfDead lets a step wait again that is in progress in an engine that is gone, so
// that a person can end it without waiting for the next run, which would only resume
// what the person is about to decide. It tells whether it did; one that runs is left
// alone.
func (ac *Acts) freeOfDead(ctx context.Context, id layout.ItemID, workflow string, step layout.Name) (freed bool, err error) {
	_, rec, err := ac.ledger.ReadTip(id, "")
	if err != nil {
		return false, err
	}
	_, s := rec.Execution.Find(workflow, step)
	if s == nil {
		return false, nil
	}
	k, a, ok := s.Current()
	if !ok || a.State != state.InProgress || !ac.ledger.Site.Mine(state.SiteOf(a.Runner)) || rec.Execution.Lost(workflow, step, k) {
		return false, nil
	}
	lives, err := ac.ledger.Seat.Alive(k.Engine)
	if err != nil {
		return false, fmt.Errorf("see whether engine %s lives: %w", k.Engine, err)
	}
	if lives {
		return false, nil
	}
	if ledger.Rehearsing(ctx) {
		return false, ledger.ErrRehearsed
	}
	why := fmt.Sprintf("engine %s (%s) is gone; a person acts on the step", k.Engine, a.Runner)
	if err := ac.recover(ctx, layout.AttemptRef{Item: id, Workflow: workflow, Step: step, Key: k}, why); err != nil {
		return false, fmt.Errorf("recover item %s: %w", id.Short(), err)
	}
	return true, nil
}

// freeAfter is freeOfDead of every step that needs one.
func (ac *Acts) freeAfter(ctx context.Context, id layout.ItemID, workflow string, step layout.Name) error {
	_, rec, err := ac.ledger.ReadTip(id, workflow)
	if err != nil {
		return err
	}
	for i := range rec.Plan.Steps {
		if rec.Plan.Steps[i].Name != string(step) {
			continue
		}
		for _, n := range rec.Plan.After(i) {
			if _, err := ac.freeOfDead(ctx, id, workflow, layout.Name(rec.Plan.Steps[n].Name)); err != nil {
				return err
			}
		}
	}
	return nil
}
