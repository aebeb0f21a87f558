package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// records are the committed files of one item; nil where there is none.
type records struct{ manifest, execution, inventory []byte }

// version is an item's records: as committed, or, when at is zero, as mended.
type version struct {
	at    gitstore.Hash
	files records
}

// readRecords reads an item's files.
func readRecords(r gitstore.Reader, id layout.ItemID) (f records, err error) {
	dir := layout.ItemDir(id) + "/"
	for name, to := range map[string]*[]byte{
		layout.ManifestJSON: &f.manifest, layout.ExecutionJSON: &f.execution, layout.InventoryJSON: &f.inventory,
	} {
		data, err := r.ReadFile(dir + name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return f, fmt.Errorf("item %s: %w", id, err)
		}
		*to = data
	}
	return f, nil
}

func (f records) absent() bool { return f.manifest == nil && f.execution == nil }

// sound tells whether the records can be used by themselves: what is not is
// nothing to hold others against.
func (f records) sound(id layout.ItemID) bool {
	x, err := state.Decode(f.execution)
	if err != nil || x.Item != id {
		return false
	}
	m, err := layout.DecodeManifest(f.manifest)
	return err == nil && m.Item == id
}

// judge holds an item's records against what they were; see the package comment.
// Without breaches mended is now.
func judge(id layout.ItemID, before, now records, plans state.Plans) (mended records, breaches []string) {
	if !before.sound(id) {
		return now, nil
	}
	if now.absent() {
		return before, []string{"removed the item's records"}
	}
	mended = now
	x, err := state.Decode(before.execution)
	if err != nil {
		return now, nil // sound has read it
	}
	is, unusable := readExecution(id, now.execution)
	if unusable != "" {
		mended.execution, is = before.execution, x
		breaches = append(breaches, unusable)
	} else if fixed, found := state.Mend(x, is, plans); len(found) > 0 {
		mended.execution, is = fixed.Encode(), fixed
		breaches = append(breaches, found...)
	}
	renewed := state.Progressed(x, is) && isInventory(id, now)
	manifest, found := mendManifest(before, now, x, is, plans, renewed)
	mended.manifest = manifest
	breaches = append(breaches, found...)
	if !renewed {
		breaches = append(breaches, mendInventory(before, &mended)...)
	}
	return mended, breaches
}

// mendManifest lets the manifest say anew what was dropped where the commit made a new
// version of the item.
func mendManifest(before, now records, x, is *state.Execution, plans state.Plans, renewed bool) ([]byte, []string) {
	was, errA := layout.DecodeManifest(before.manifest)
	m, errB := layout.DecodeManifest(now.manifest)
	x.Since = was.Since
	if errA == nil && errB == nil && m.Version != was.Version && computed(x, plans) && state.NewVersion(x, is, was, m) {
		return state.MendVersion(before.manifest, now.manifest)
	}
	return state.MendManifest(before.manifest, now.manifest, renewed)
}

// computed computes the statuses of a record; false: some definition is not there.
func computed(x *state.Execution, plans state.Plans) bool {
	for name, w := range x.Workflows {
		d := plans(w.Digest)
		if d == nil {
			return false
		}
		x.Compute(name, d)
	}
	return true
}

func readExecution(id layout.ItemID, data []byte) (x *state.Execution, unusable string) {
	if data == nil {
		return nil, "removed " + layout.ExecutionJSON
	}
	x, err := state.Decode(data)
	if err != nil {
		return nil, "left a record that cannot be used: " + err.Error()
	}
	if x.Item != id {
		return nil, "put another item's " + layout.ExecutionJSON + " in its place"
	}
	return x, ""
}

// isInventory tells whether the inventory is the item's and the one its manifest
// speaks of.
func isInventory(id layout.ItemID, f records) bool {
	m, err := layout.DecodeManifest(f.manifest)
	if err != nil || m.Inventory == nil || m.Inventory.Digest != digestOf(f.inventory) {
		return false
	}
	inv, err := layout.DecodeInventory(f.inventory)
	return err == nil && inv.Item == id && len(inv.Files) == m.Inventory.Files && inv.Bytes() == m.Inventory.Bytes
}

// mendInventory puts the inventory back that the manifest speaks of.
func mendInventory(before records, mended *records) []string {
	m, err := layout.DecodeManifest(mended.manifest)
	if err != nil || m.Inventory == nil || bytes.Equal(before.inventory, mended.inventory) ||
		digestOf(before.inventory) != m.Inventory.Digest || digestOf(mended.inventory) == m.Inventory.Digest {
		return nil
	}
	what := "changed "
	if mended.inventory == nil {
		what = "removed "
	}
	mended.inventory = before.inventory
	return []string{what + layout.InventoryJSON}
}
