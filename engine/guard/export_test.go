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
func (g *Guard) Most(commits int) { g.pace.most = commits }

// Pace has lookers take so many commits at once, and share the items of commits that touched so many.
func (g *Guard) Pace(stretch, many int) { g.pace.stretch, g.pace.many = stretch, many }
