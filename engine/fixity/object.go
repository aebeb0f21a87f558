package fixity

import (
	"context"
	"errors"
	"os"

	"bagpipe/engine/fault"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Object writes an item's object, as its inventory names it, to a place where nothing is: out
// of a sound copy of its bag, or from where it stands; compared with the inventory. A crash
// leaves to, and to.bag beside it, which the caller removes.
func Object(ctx context.Context, c *Checks, id layout.ItemID, to string) (err error) {
	bag := to + ".bag"
	got, err := c.Retrieve(ctx, id, 0, "", bag, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.RemoveTree(bag)) }()
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return err
	}
	r, err := c.read(v, id)
	if err != nil {
		return err
	}
	if got.Copy == Content {
		return os.Rename(bag, to)
	}
	if r.inventory == nil {
		return fault.New(fault.Refused, "item "+id.Short()+" has no inventory")
	}
	if err := os.Mkdir(to, 0o777); err != nil {
		return err
	}
	if err := unbag(bag, to, r.inventory); err != nil {
		return notSound(got.From, err)
	}
	_, _, err = compare(ctx, to, nil, r.inventory, nil)
	return notSound(got.From, err)
}
