package engine

import (
	"context"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"
	"bagpipe/layout"
)

// Examine makes verdicts of what others committed, and answers nothing.
func (e *Engine) Examine(ctx context.Context) error {
	if err := e.Ledger.Store.Refresh(ctx); err != nil {
		return err
	}
	e.Guard.turn.Lock()
	defer e.Guard.turn.Unlock()
	return e.Guard.examine(ctx)
}

// Answer answers for one item by the verdicts there are.
func (e *Engine) Answer(ctx context.Context, id layout.ItemID) error {
	e.Guard.turn.Lock()
	defer e.Guard.turn.Unlock()
	return e.Guard.answerItems(ctx, []layout.ItemID{id})
}

// LookAtFew is what a command does before it writes.
func (e *Engine) LookAtFew(ctx context.Context) error {
	if err := e.Ledger.Store.Refresh(ctx); err != nil {
		return err
	}
	return e.Guard.LookAtFew(ctx)
}

// TakeOne hands out a ready step of an item, as a run does, and gives what claims it.
func (e *Engine) TakeOne(label string) (claim func(context.Context) error, ok bool) {
	e.Index.Loaded().Only(func(entry queue.Entry) (bool, time.Time) { return entry.Item.Label == label, time.Time{} })
	entry, ok, _ := e.Index.Loaded().Take(e.Ledger.Now(), nil)
	return func(ctx context.Context) error {
		_, err := e.Attempt.begin(ctx, entry)
		return err
	}, ok
}

// LoadedFrom is the tree of the checkpoint that the index was begun with.
func (e *Engine) LoadedFrom() gitstore.Hash {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Index.Derived.saved
}

// MustItems is Items for tests, where it cannot fail.
func (e *Engine) MustItems(f ask.Filter) []ask.ItemRow {
	rows, err := e.Ask.Items(f, ask.Page{})
	if err != nil {
		panic(err)
	}
	return rows
}
