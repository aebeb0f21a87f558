package act

import (
	"context"

	"bagpipe/layout"
)

// CloseBatch commits that nothing is added to a batch any more. Closing it again
// changes nothing.
func (ac *Acts) CloseBatch(ctx context.Context, name layout.Name) error {
	return ac.ledger.CloseBatch(ctx, name, ac.who)
}
