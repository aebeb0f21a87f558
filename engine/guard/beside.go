package guard

import (
	"context"
	"errors"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// lostDeliveries says so where what is known of an item's deliveries stood at a commit, and does not
// at view, or cannot be used there, though the item stands. What could not be used before may go.
func lostDeliveries(at func(gitstore.Hash) (gitstore.View, error), commit gitstore.Hash, view gitstore.Reader, id layout.ItemID, now ledger.Records) ([]string, error) {
	if commit.IsZero() || now.Absent() || now.Retired != (layout.Standing{}) || tombstone(now.Manifest) != nil {
		return nil, nil
	}
	before, err := at(commit)
	if err != nil {
		return nil, err
	}
	p := layout.ItemDir(id) + "/" + layout.DeliveryJSON
	was, errWas := ledger.ReadOptional(before, p)
	is, errIs := ledger.ReadOptional(view, p)
	if err := errors.Join(errWas, errIs); err != nil || was == nil || ledger.Unusable(layout.DeliveryJSON, was) != nil {
		return nil, err
	}
	if is == nil {
		return []string{"removed " + layout.DeliveryJSON}, nil
	}
	if wrong := ledger.Unusable(layout.DeliveryJSON, is); wrong != nil {
		return []string{"left a record that cannot be used: " + wrong.Error()}, nil
	}
	return nil, nil
}

// LeadsTo reports whether the commit in which an item's records last stood leads to another.
func LeadsTo(ctx context.Context, l *ledger.Ledger, s layout.Standing, c gitstore.Commit) (bool, error) {
	h, err := gitstore.ParseHash(s.Commit)
	if err != nil || slices.Contains(c.Parents, h) {
		return err == nil, nil //nolint:nilerr // it names no commit
	}
	base, err := l.Store.Base(ctx, h, c.Hash)
	return base == h, err
}
