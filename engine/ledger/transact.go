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
// item is looked at first, and answered. In a context of Expecting, an item that is not as
// expected is refused with ErrChanged.
func (l *Ledger) Transact(ctx context.Context, id layout.ItemID, apply func(gitstore.Reader) (*gitstore.Change, error)) error {
	if Rehearsing(ctx) {
		v, err := l.Store.Tip()
		if err == nil {
			_, err = apply(v)
		}
		if err == nil {
			err = ErrRehearsed
		}
		return err
	}
	expected := expectedOf(ctx, id)
	for {
		var refusal error
		_, err := l.Store.CommitTo(ctx, layout.ItemDir(id), func(r gitstore.Reader) (c *gitstore.Change, err error) {
			if refusal = errUnseen; !l.gate.Unseen(id) {
				if refusal = expected.check(r); refusal == nil {
					c, refusal = apply(r)
				}
			}
			return c, refusal
		})
		if expected != nil && err == nil {
			expected.met = true
		}
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
