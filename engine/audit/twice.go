package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// twice tells of the steps that more than one attempt completed and no reset took back, by the
// records at the tip of the items that are doubted: those of which a commit left a step that
// several completed, and those that changed otherwise than by one event. All others were seen, as
// the replay made them, to have none.
func (a *Auditor) twice(ctx context.Context, v gitstore.View) error {
	for _, id := range slices.Sorted(maps.Keys(a.doubted)) {
		last, err := ledger.StandingOf(a.ledger, v, id)
		if err != nil {
			return err
		}
		x, err := state.Decode(last.Execution)
		if err != nil {
			continue // it is not there, or told where it was committed
		}
		for _, text := range completedTwice(x) {
			commit, err := a.sinceWhen(ctx, v, id, text)
			if err != nil {
				return err
			}
			a.tell(Finding{Commit: commit, Item: id, Kind: Twice, Text: text})
		}
	}
	return nil
}

// sinceWhen gives the first commit from which on an item's record tells of a step that was completed twice: what others
// did to the item since left it so.
func (a *Auditor) sinceWhen(ctx context.Context, v gitstore.View, id layout.ItemID, text string) (commit string, err error) {
	for c, err := range a.ledger.Store.History(ctx, gitstore.HistoryOptions{From: v.Commit(), Path: layout.ItemDir(id) + "/" + layout.ExecutionJSON}) {
		if err != nil {
			return "", err
		}
		at, err := a.ledger.Store.At(c.Hash)
		if err != nil {
			return "", err
		}
		then, err := ledger.StandingOf(a.ledger, at, id)
		if err != nil {
			return "", err
		}
		if x, err := state.Decode(then.Execution); err != nil || !slices.Contains(completedTwice(x), text) {
			break
		}
		commit = c.Hash.String()
	}
	return commit, nil
}

// severalCompleted reports whether more than one attempt completed a step, taken back or not.
func severalCompleted(x *state.Execution) bool {
	for _, w := range x.Workflows {
		for _, s := range w.Steps {
			n := 0
			for _, at := range s.Attempts {
				if at.State == state.Completed {
					n++
				}
			}
			if n > 1 {
				return true
			}
		}
	}
	return false
}

func completedTwice(x *state.Execution) (said []string) {
	for _, name := range x.Names() {
		steps := x.Workflows[name].Steps
		for _, step := range slices.Sorted(maps.Keys(steps)) {
			s := steps[step]
			var by []string
			for _, k := range s.Keys() {
				if at := s.Attempts[k]; at.State == state.Completed && !x.TakenBack(name, step, k) {
					by = append(by, k.String()+" of "+at.Runner+at.By)
				}
			}
			if len(by) > 1 {
				said = append(said, fmt.Sprintf("%s/%s was completed %d times: %s", name, step, len(by), strings.Join(by, ", ")))
			}
		}
	}
	return said
}
