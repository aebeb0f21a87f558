package intake

import (
	"context"
	"errors"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake/identity"
	"bagpipe/layout"
)

// The rules are: a drop is a duplicate when an item was made of a drop with the same
// digest: of a file its bytes, of a folder the sorted names, sizes and digests of its
// files. An inbox's policy says what becomes of it. It is asked before the drop moves
// to its item's folder, and once more within the transaction that makes the item, as
// another engine, or this one, may have been faster; one that is refused only there
// goes back into the intake and is rejected from it. Of drops of one group with one
// digest the first goes first.

// guardKnown is what registerItem asks within its transaction: that the item is not
// known by then. It notes the item, so that the next of its group finds it.
func (a *admitting) guardKnown(ctx context.Context, m *layout.Manifest) (func(gitstore.Reader, *layout.Manifest) error, error) {
	policy := a.settings.Current().Settings.Drops(m.Collection).Duplicates
	if !identity.Asks(policy, m) {
		return nil, nil
	}
	k, err := a.Identities.Load(ctx)
	if err != nil {
		return nil, err
	}
	return func(r gitstore.Reader, m *layout.Manifest) error {
		err := k.Judge(r, m, policy)
		if err == nil {
			k.Add(m.Item, identity.KeysOf(m))
		}
		return err
	}, nil
}

// refuseKnown looks, before anything moves, whether a drop is known.
func (a *admitting) refuseKnown(ctx context.Context, d *drop) error {
	m := d.manifest()
	policy := a.settings.Current().Settings.Drops(m.Collection).Duplicates
	if d.taken.Ticket.VersionOf == "" && !identity.Asks(policy, &m) {
		return nil
	}
	v, err := a.ledger.Store.Tip()
	if err != nil {
		return err
	}
	k, err := a.Identities.Load(ctx)
	if err != nil {
		return err
	}
	if err := d.refusedBy(k.Judge(v, &m, policy)); err != nil {
		return err
	}
	return a.inherit(ctx, v, d, &m)
}

// refusedBy takes an error that refuses the drop as such.
func (d *drop) refusedBy(err error) error {
	var is *identity.KnownError
	if !errors.As(err, &is) {
		return err
	}
	d.refused, d.rule = is.Text, is.Rule
	return nil
}

// repeats parts the drops whose content or identifiers an earlier one of the group
// has: they are dealt with once that is an item.
func (a *admitting) repeats(drops []drop) (first, later []*drop) {
	s := a.settings.Current().Settings
	seen := map[uint64]bool{}
	for i := range drops {
		d := &drops[i]
		m := d.manifest()
		again := false
		if d.err == nil && d.refused == "" && !d.done && identity.Asks(s.Drops(m.Collection).Duplicates, &m) {
			for _, key := range identity.KeysOf(&m) {
				again = again || seen[key]
				seen[key] = true
			}
		}
		if again {
			later = append(later, d)
		} else {
			first = append(first, d)
		}
	}
	return first, later
}
