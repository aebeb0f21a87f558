package engine

import (
	"context"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"
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

// TakeOne hands out a ready step of an item, as a run does, and gives what claims it.
func (e *Engine) TakeOne(label string) (claim func(context.Context) error, ok bool) {
	e.index.Only(func(entry queue.Entry) (bool, time.Time) { return entry.Item.Label == label, time.Time{} })
	entry, ok, _ := e.index.Take(e.o.Now(), nil)
	return func(ctx context.Context) error {
		_, err := e.begin(ctx, entry)
		return err
	}, ok
}

// LoadedFrom is the tree of the checkpoint that the index was begun with.
func (e *Engine) LoadedFrom() gitstore.Hash {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.derived.saved
}

// MustItems is Items for tests, where it cannot fail.
func (e *Engine) MustItems(f Filter) []ItemRow {
	rows, err := e.Items(f, Page{})
	if err != nil {
		panic(err)
	}
	return rows
}
