package engine

import (
	"context"
	"errors"
	"sync"

	"bagpipe/engine/state"
	"bagpipe/layout"
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
func (e *Engine) Bulk(ctx context.Context, seen []SeenStep, act func(context.Context, SeenStep) (state.Transition, error)) ([]Done, error) {
	rows, errs := make([]Done, len(seen)), make([]error, len(seen))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	room := make(chan struct{}, retriesAtOnce)
	var wg sync.WaitGroup
	for i, s := range seen {
		rows[i] = Done{Item: s.Item, Workflow: s.Workflow, Step: s.Step, From: s.Status}
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			if errs[i] = ctx.Err(); errs[i] != nil {
				return
			}
			_, err := act(ctx, s)
			if IsRefused(err) {
				rows[i].Refused, err = err.Error(), nil
			}
			if errs[i] = err; err != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	for _, err := range errs { // the one that ended it
		if err != nil && !errors.Is(err, context.Canceled) {
			return rows, err
		}
	}
	return rows, errors.Join(errs...)
}
