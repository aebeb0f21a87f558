package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// twice tells of the steps that more than one attempt completed and no reset took back, by
// the records at the tip that differ from those at since.
func (a *Auditor) twice(ctx context.Context, v gitstore.View, since gitstore.Hash) error {
	var mu sync.Mutex // guards found
	var found []Finding
	var from gitstore.Hash // the files at since
	if !since.IsZero() {
		was, err := a.ledger.Store.At(since)
		if err != nil {
			return err
		}
		from = was.Tree()
	}
	look := func(data []byte) {
		x, err := state.Decode(data)
		if err != nil {
			return // told where it was committed
		}
		for _, text := range completedTwice(x) {
			mu.Lock()
			found = append(found, Finding{Item: x.Item, Kind: Twice, Text: text})
			mu.Unlock()
		}
	}
	err := v.Folders(ctx, from, layout.ItemsDir, ledger.ItemDepth, func(f gitstore.Folder) error {
		data, err := f.ReadFile(layout.ExecutionJSON)
		if err == nil && data != nil {
			look(data)
		}
		return err
	})
	if err == nil {
		err = ledger.EachRetired(ctx, v, from, func(id layout.ItemID, _ layout.Standing) error {
			last, err := ledger.StandingOf(a.ledger, v, id)
			if err == nil && last.Retired != (layout.Standing{}) {
				look(last.Execution)
			}
			return err
		})
	}
	slices.SortFunc(found, func(a, b Finding) int { return strings.Compare(string(a.Item)+a.Text, string(b.Item)+b.Text) })
	for _, f := range found {
		a.tell(f)
	}
	return err
}

func completedTwice(x *state.Execution) (said []string) {
	for _, name := range x.Names() {
		for step, s := range x.Workflows[name].Steps {
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
