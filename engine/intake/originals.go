package intake

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/inbox"
	"bagpipe/layout"
)

// The rules are: the original of a copied drop that may not be removed stays in the
// inbox. Its item's manifest names it (originals), so that it is taken once, whatever
// becomes of .bagpipe: the transaction that makes an item asks for it, and so does every
// scan, for drops that would stay. status says that it was taken in, and that it changed
// since; its owner removes it, or gives it another name to have it taken in again.

// ruleOriginal is broken by a copy of an original that another copy was faster than.
const ruleOriginal = "original"

// originalKey is the key of an original's path.
func originalKey(path string) uint64 {
	sum := sha256.Sum256([]byte("original\x00" + path))
	return binary.BigEndian.Uint64(sum[:])
}

// original finds the item that an original is in already; changed reports whether the
// original is no longer as it was taken.
func (k *known) original(r gitstore.Reader, o layout.Original, but layout.ItemID) (of *layout.Manifest, changed bool, err error) {
	items, err := k.holders(r, originalKey(o.Path), but, func(m *layout.Manifest) bool { return m.Originals[o.Path].Path != "" })
	for i := range items {
		was := items[i].Originals[o.Path]
		if was.State == o.State {
			return &items[i], false, nil
		}
		if was.File == o.File {
			of = &items[i]
		}
	}
	return of, of != nil, err
}

// judgeOriginals refuses a copy of an original that is in an item already.
func (k *known) judgeOriginals(r gitstore.Reader, m *layout.Manifest) error {
	for _, path := range slices.Sorted(maps.Keys(m.Originals)) {
		of, _, err := k.original(r, m.Originals[path], m.Item)
		if err != nil {
			return err
		}
		if of != nil {
			return &knownError{ruleOriginal, "it is in " + nameItem(*of) + " already"}
		}
	}
	return nil
}

// originalIn finds the item that an original in the inbox was taken in as, at the tip.
func (in *Intake) originalIn(ctx context.Context, o layout.Original) (item layout.ItemID, changed bool, err error) {
	v, err := in.ledger.Store.Tip()
	if err != nil {
		return "", false, err
	}
	k, err := in.theKnown(ctx)
	if err != nil {
		return "", false, err
	}
	of, changed, err := k.original(v, o, "")
	if err != nil || of == nil {
		return "", false, err
	}
	return of.Item, changed, nil
}

// forgetCopy discards the copy of an original that is in an item already.
func (in *Intake) forgetCopy(box *inbox.Box, d *drop) (err error) {
	if d.taken, err = box.Demote(d.taken); err != nil {
		return err
	}
	d.done = true
	return box.Discard(d.taken)
}
