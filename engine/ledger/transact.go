package ledger

import (
	"context"
	"errors"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// Gate refuses a change to an item that another writer touched, until Look has looked at
// it. Both methods may be called by several goroutines, and calling them again is harmless.
type Gate interface {
	// Unseen reports whether the item must be looked at first. It is called within an
	// edit, and must not commit.
	Unseen(id layout.ItemID) bool
	// Look compares the commits of others with what the items were, and answers for the
	// item. It commits; its error ends the transaction.
	Look(ctx context.Context, id layout.ItemID) error
}

// errUnseen is an item that others touched, and that has not been looked at.
var errUnseen = errors.New("another writer's change to the item has not been looked at")

// Transact is store.CommitTo of a change to one item. Another writer's change to the
// item is looked at first, and answered.
func (l *Ledger) Transact(ctx context.Context, id layout.ItemID, apply func(gitstore.Reader) (*gitstore.Change, error)) error {
	for {
		var refusal error
		_, err := l.Store.CommitTo(ctx, layout.ItemDir(id), func(r gitstore.Reader) (c *gitstore.Change, err error) {
			if refusal = errUnseen; !l.gate.Unseen(id) {
				c, refusal = apply(r)
			}
			return c, refusal
		})
		if !errors.Is(err, errUnseen) {
			return ofStore(err, refusal)
		}
		if err := l.gate.Look(ctx, id); err != nil {
			return err
		}
	}
}

// advanced tells the observers of one move of the branch. The store calls it in the order
// of the commits, one call at a time.
func (l *Ledger) advanced(a gitstore.Advance) {
	for _, observe := range l.observers {
		observe(a)
	}
}
