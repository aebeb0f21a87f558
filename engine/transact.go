package engine

import (
	"context"
	"errors"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// gate vetoes a change to an item that another writer touched and nobody has looked at.
type gate interface {
	// unseen reports whether the item must be looked at before anything happens to it.
	unseen(id layout.ItemID) bool
	// look looks at what others committed, and answers for the item.
	look(ctx context.Context, id layout.ItemID) error
}

// errUnseen is an item that others touched, and that has not been looked at.
var errUnseen = errors.New("another writer's change to the item has not been looked at")

// transact is store.CommitTo of a change to one item. Another writer's change to the
// item is looked at first, and answered.
func (e *Engine) transact(ctx context.Context, id layout.ItemID, apply func(gitstore.Reader) (*gitstore.Change, error)) error {
	for {
		var refusal error
		_, err := e.store.CommitTo(ctx, layout.ItemDir(id), func(r gitstore.Reader) (c *gitstore.Change, err error) {
			if refusal = errUnseen; !e.gate.unseen(id) {
				c, refusal = apply(r)
			}
			return c, refusal
		})
		if !errors.Is(err, errUnseen) {
			return ofStore(err, refusal)
		}
		if err := e.gate.look(ctx, id); err != nil {
			return err
		}
	}
}

// advanced tells the observers of one move of the branch. The store calls it in the order
// of the commits, one call at a time.
func (e *Engine) advanced(a gitstore.Advance) {
	for _, observe := range e.observers {
		observe(a)
	}
}
