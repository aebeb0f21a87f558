package engine

import (
	"context"

	"bagpipe/layout"
)

// Examine makes verdicts of what others committed, and answers nothing.
func (e *Engine) Examine(ctx context.Context) error {
	if err := e.store.Refresh(ctx); err != nil {
		return err
	}
	e.arrivals.turn.Lock()
	defer e.arrivals.turn.Unlock()
	return e.examine(ctx)
}

// Answer answers for one item by the verdicts there are.
func (e *Engine) Answer(ctx context.Context, id layout.ItemID) error {
	e.arrivals.turn.Lock()
	defer e.arrivals.turn.Unlock()
	return e.answerItems(ctx, []layout.ItemID{id})
}

// LookAtFew is what a command does before it writes.
func (e *Engine) LookAtFew(ctx context.Context) error {
	if err := e.store.Refresh(ctx); err != nil {
		return err
	}
	return e.lookAtFew(ctx)
}
