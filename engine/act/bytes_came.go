package act

import (
	"context"
	"slices"

	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// BytesCame has the steps of an item done at once that are put off, or failed, as its bytes were not in
// the workspace, and gives their names, as WORKFLOW/STEP. What else keeps the bytes away is told of by the steps.
func BytesCame(ctx context.Context, ac *Acts, id layout.ItemID) (again []string, err error) {
	if err := ac.guard.Look(ctx, id); err != nil {
		return nil, err
	}
	_, rec, err := ac.ledger.ReadTip(id, "")
	if err != nil {
		return nil, err
	}
	for _, run := range rec.Execution.Names() {
		for name, s := range rec.Execution.Workflows[run].Steps {
			_, a, _ := s.Current()
			if open := a.State == state.Deferred || a.State == state.Failed; !open || !folder.SaysAbsent(a.Message) {
				continue
			}
			_, err := ac.Retry(ctx, ledger.StepRef{Item: id, Workflow: run, Step: name}, "the item's bytes came")
			if err != nil && !ledger.IsRefused(err) { // refused: it was tried meanwhile, or its workflow is over
				return again, err
			}
			if err == nil {
				again = append(again, run+"/"+string(name))
			}
		}
	}
	slices.Sort(again)
	return again, nil
}
