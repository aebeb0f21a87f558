package act

import (
	"context"
	"errors"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// Done is what became of one item of many.
type Done struct {
	Item     layout.ItemID `json:"item"`
	Workflow string        `json:"workflow,omitempty"`
	Step     layout.Name   `json:"step,omitempty"`
	From     state.Status  `json:"from,omitempty"`
	Refused  string        `json:"refused,omitempty"`
}

// Bulk acts on many steps, or items: side by side, so that the acts share groups of
// commits; each stands in the history by itself. What is refused on one item is told
// in its row, and the others go on; any other error ends it.
func (ac *Acts) Bulk(ctx context.Context, seen []SeenStep, act func(context.Context, SeenStep) (state.Transition, error)) ([]Done, error) {
	rows, errs := make([]Done, len(seen)), make([]error, len(seen))
	acting, ctx := errgroup.WithContext(ctx)
	acting.SetLimit(retriesAtOnce)
	for i, s := range seen {
		rows[i] = Done{Item: s.Item, Workflow: s.Workflow, Step: s.Step, From: s.Status}
		acting.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] != nil {
				return nil
			}
			_, err := act(ctx, s)
			if ledger.IsRefused(err) {
				rows[i].Refused, err = err.Error(), nil
			}
			errs[i] = err
			return err
		})
	}
	if err := acting.Wait(); err != nil { // the one that ended it
		return rows, err
	}
	return rows, errors.Join(errs...)
}
