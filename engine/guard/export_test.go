package guard

import (
	"context"

	"bagpipe/layout"
)

// Examine makes verdicts of what others committed, and answers nothing.
func (g *Guard) Examine(ctx context.Context) error {
	g.turn.Lock()
	defer g.turn.Unlock()
	return g.examine(ctx)
}

// Answer answers for one item by the verdicts there are.
func (g *Guard) Answer(ctx context.Context, id layout.ItemID) error {
	g.turn.Lock()
	defer g.turn.Unlock()
	return g.answerItems(ctx, []layout.ItemID{id})
}

// Most has only the ends compared of windows of more commits.
func (g *Guard) Most(commits int) { g.most = commits }
