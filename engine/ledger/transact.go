package ledger

import (
	"context"
	"errors"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// gate vetoes a change to an item that another writer touched and nobody has looked at.
type Gate interface {
	// unseen reports whether the item must be looked at before anything happens to it.
	Unseen(id layout.ItemID) bool
	// look looks at what others committed, and answers for the item.
	Look(ctx context.Context, id layout.ItemID) error
}

// errUnseen is an item that others touched, and that has not been looked at.
var errUnseen = errors.New("another writer's change to the item has not been looked at")

// transact is store.CommitTo of a change to one item. Another writer's change to the
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
