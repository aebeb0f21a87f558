package intake

import (
	"context"

	"bagpipe/layout"
)

// The rules are: the original of a copied drop that may not be removed stays in the
// inbox. Its item's manifest names it (originals), so that it is taken once, whatever
// becomes of .bagpipe: the transaction that makes an item asks for it, and so does every
// scan, for drops that would stay. status says that it was taken in, and that it changed
// since; its owner removes it, or gives it another name to have it taken in again.

// originalIn finds the item that an original in the inbox was taken in as, at the tip.
func (in *Intake) originalIn(ctx context.Context, o layout.Original) (item layout.ItemID, changed bool, err error) {
	v, err := in.ledger.Store.Tip()
	if err != nil {
		return "", false, err
	}
	k, err := in.Identities.Load(ctx)
	if err != nil {
		return "", false, err
	}
	of, changed, err := k.Original(v, o, "")
	if err != nil || of == nil {
		return "", false, err
	}
	return of.Item, changed, nil
}

// forgetCopy discards the copy of an original that is in an item already.
func (a *admitting) forgetCopy(d *drop) (err error) {
	if d.taken, err = a.box.Demote(d.taken); err != nil {
		return err
	}
	d.done = true
	return a.box.Discard(d.taken)
}
