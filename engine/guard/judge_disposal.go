package guard

import (
	"bytes"
	"context"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/engine/warrant"
	"bagpipe/layout"
)

// The rules are: an item is disposed of by an intent, which counts where the proposal that it
// names is in the same commit, with its approvals; then its manifest becomes a tombstone of the
// same proposal, and its inventory goes. A tombstone is never changed, and nothing comes back
// beside it.

// tombstone gives what a manifest says of the item's disposal; nil: it is no tombstone.
func tombstone(manifest []byte) *layout.Disposed {
	if !bytes.Contains(manifest, []byte(`"disposed"`)) {
		return nil
	}
	m, err := layout.DecodeManifest(manifest)
	if err != nil {
		return nil
	}
	return m.Disposed
}

// mendTombstone holds the files of an item that is a tombstone, or becomes one; is reports
// whether there is nothing else to hold against each other.
func mendTombstone(before ledger.Records, mended *ledger.Records, is *state.Execution) (breaches []string, done bool) {
	was, now := tombstone(before.Manifest), tombstone(mended.Manifest)
	switch {
	case was == nil && now == nil:
		return nil, false
	case was != nil:
		if !bytes.Equal(before.Manifest, mended.Manifest) {
			breaches = append(breaches, "changed the tombstone of an item that was disposed of")
		}
		if mended.Inventory != nil {
			breaches = append(breaches, "brought "+layout.InventoryJSON+" of an item back that was disposed of")
		}
		if mended.Deposits != nil && !bytes.Equal(before.Deposits, mended.Deposits) {
			breaches = append(breaches, "changed "+layout.DepositsJSON+" of an item that was disposed of")
			mended.Deposits = before.Deposits
		}
		mended.Manifest, mended.Inventory = before.Manifest, nil
		return breaches, true
	case becomes(before.Manifest, mended.Manifest, *now) && mended.Inventory == nil && intended(is, now.Proposal):
		return nil, true
	}
	*mended = ledger.Records{Manifest: before.Manifest, Execution: mended.Execution, Inventory: before.Inventory, Deposits: before.Deposits}
	return []string{"made a tombstone of an item that is not disposed of"}, true
}

// becomes reports whether a manifest is the tombstone that another makes.
func becomes(before, now []byte, d layout.Disposed) bool {
	m, err := layout.DecodeManifest(before)
	if err != nil {
		return false
	}
	want, err := m.Tombstone(d).EncodeTombstone(before)
	return err == nil && bytes.Equal(want, now)
}

// intended reports whether the item is being disposed of by a proposal.
func intended(x *state.Execution, proposal string) bool {
	in, is := state.Disposal(x)
	return is && string(in.Target) == proposal
}

// disposals takes out what begins an item's disposal without the approvals it needs at view.
func disposals(ctx context.Context, l *ledger.Ledger, view gitstore.View, id layout.ItemID, before ledger.Records, mended *ledger.Records, plans state.Plans) ([]string, error) {
	mark := []byte(`"kind": "` + state.DisposeIntent + `"`)
	if !bytes.Contains(mended.Execution, mark) || bytes.Contains(before.Execution, mark) {
		return nil, nil
	}
	x, err := state.Decode(mended.Execution)
	if err != nil {
		return nil, nil //nolint:nilerr // judge has told of it
	}
	in, is := state.Disposal(x)
	if !is {
		return nil, nil
	}
	manifest := mended.Manifest
	if before.Manifest != nil {
		manifest = before.Manifest
	}
	why, err := warrant.Lawful(ctx, l.Store, view, string(in.Target), id, manifest, mended.Execution, in.At)
	if err != nil || why == "" {
		return nil, err
	}
	state.Undispose(x)
	x.Recompute(plans)
	mended.Execution = x.Encode()
	if tombstone(mended.Manifest) != nil {
		mended.Manifest, mended.Inventory, mended.Deposits = before.Manifest, before.Inventory, before.Deposits
	}
	return []string{"began to dispose of the item: " + why}, nil
}

// joinTombstones gives the records of an item that one of two histories disposed of; false:
// none did. Of its copies those stay on record that the disposal knew nothing of.
func joinTombstones(a, b, out ledger.Records) (ledger.Records, bool, error) {
	x, y := tombstone(a.Manifest), tombstone(b.Manifest)
	switch {
	case x == nil && y == nil:
		return out, false, nil
	case x == nil, y != nil && string(a.Manifest) < string(b.Manifest):
		a, x = b, y
	}
	out.Manifest, out.Inventory = a.Manifest, nil
	d, err := layout.DecodeDeposits(out.Deposits)
	if out.Deposits == nil || err != nil {
		out.Deposits = nil
		return out, true, nil //nolint:nilerr // what cannot be read names no copies
	}
	for name := range d.Targets {
		if slices.Contains(x.Removed, string(name)) {
			delete(d.Targets, name)
		}
	}
	out.Deposits, d.Copies = nil, map[string]layout.FixityCheck{}
	if len(d.Targets) > 0 {
		out.Deposits, err = d.Encode()
	}
	return out, true, err
}
