package guard

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// untrueDelivery is what was done to an item's delivery.json, which was other bytes; nil: there was none.
type untrueDelivery struct {
	what []string
	was  []byte
}

// untrueDeliveries holds what is known of an item's deliveries at view against what it was at a commit.
func untrueDeliveries(at func(gitstore.Hash) (gitstore.View, error), commit gitstore.Hash, view gitstore.Reader, id layout.ItemID, now ledger.Records) (u untrueDelivery, err error) {
	if commit.IsZero() || now.Absent() || now.Retired != (layout.Standing{}) || tombstone(now.Manifest) != nil {
		return u, nil
	}
	before, err := at(commit)
	if err != nil {
		return u, err
	}
	p := layout.ItemDir(id) + "/" + layout.DeliveryJSON
	was, errWas := ledger.ReadOptional(before, p)
	is, errIs := ledger.ReadOptional(view, p)
	if err := errors.Join(errWas, errIs); err != nil || bytes.Equal(was, is) && (was == nil) == (is == nil) {
		return u, err
	}
	if what := ledger.UntrueDelivery(was, is); what != "" {
		u.what, u.was = []string{what}, was
	}
	return u, nil
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
