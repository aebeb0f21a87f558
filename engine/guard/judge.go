package guard

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// version is an item's records: as committed, or, when at is zero, as mended; beside is then where
// the other files of the item stand.
type version struct {
	at     gitstore.Hash
	files  ledger.Records
	beside gitstore.Hash
}

// judge holds an item's records against what they were; see the package comment.
// Without breaches mended is now.
func judge(id layout.ItemID, before, now ledger.Records, plans state.Plans) (mended ledger.Records, breaches []string) {
	h := hold(id, before, now, plans)
	return h.mended, h.breaches
}

// held is what judge came to, and the execution records before and mended, decoded; nil: they
// were not.
type held struct {
	mended   ledger.Records
	breaches []string
	was, is  *state.Execution
}

// decode reads the execution records; what cannot be read is nil.
func (h *held) decode(before, mended ledger.Records) {
	h.was, h.is = nil, nil
	if x, err := state.Decode(before.Execution); err == nil {
		h.was = x
	}
	if x, err := state.Decode(mended.Execution); err == nil {
		h.is = x
	}
}

func hold(id layout.ItemID, before, now ledger.Records, plans state.Plans) held {
	x, sound := before.Usable(id)
	if !sound {
		return held{mended: now}
	}
	was := before.Retired
	before.Retired = layout.Standing{}
	switch {
	case now.Absent():
		return held{mended: before, breaches: []string{"removed the item's records"}}
	case now.Retired != (layout.Standing{}):
		if what := judgeRetired(before, was, now, plans); what != "" {
			return held{mended: before, breaches: []string{what}}
		}
		return held{mended: now}
	}
	h := held{was: x}
	h.mended, h.is, h.breaches = judgeStanding(id, before, now, x, plans)
	return h
}

// judgeStanding is judge of records that stand; x and is are the execution records, decoded.
func judgeStanding(id layout.ItemID, before, now ledger.Records, x *state.Execution, plans state.Plans) (mended ledger.Records, is *state.Execution, breaches []string) {
	mended = now
	is, unusable := readExecution(id, now.Execution)
	if unusable != "" {
		mended.Execution, is = before.Execution, x
		breaches = append(breaches, unusable)
	} else if fixed, found := state.Mend(x, is, plans); len(found) > 0 {
		mended.Execution, is = fixed.Encode(), fixed
		breaches = append(breaches, found...)
	}
	if found, done := mendTombstone(before, &mended, is); done {
		return mended, is, append(breaches, found...)
	}
	renewed := state.Progressed(x, is) && isInventory(id, now)
	manifest, found := mendManifest(before, now, x, is, plans, renewed)
	mended.Manifest = manifest
	breaches = append(breaches, found...)
	if !renewed {
		breaches = append(breaches, mendInventory(before, &mended)...)
	}
	breaches = append(breaches, mendDeposits(before, &mended)...)
	return mended, is, breaches
}

// judgeRetired says what is not lawful in an item's being retired; was is where its records
// stood before, where it was so already.
func judgeRetired(before ledger.Records, was layout.Standing, now ledger.Records, plans state.Plans) string {
	if was == now.Retired {
		return ""
	}
	if !now.Same(before) {
		return "retired the item with other records than it had"
	}
	x, errX := state.Decode(before.Execution)
	m, errM := layout.DecodeManifest(before.Manifest)
	if errX != nil || errM != nil || was != (layout.Standing{}) {
		return ""
	}
	x.Since = m.Since
	if !computed(x, plans) {
		return "retired an item whose definition is not in the history"
	}
	if why := state.Unfinished(x, m); why != "" {
		return "retired an item that is not finished: " + why
	}
	return ""
}

// mendManifest lets the manifest say anew what was dropped where the commit made a new
// version of the item.
func mendManifest(before, now ledger.Records, x, is *state.Execution, plans state.Plans, renewed bool) ([]byte, []string) {
	if now.Manifest != nil && bytes.Equal(before.Manifest, now.Manifest) {
		return now.Manifest, nil
	}
	was, errA := layout.DecodeManifest(before.Manifest)
	m, errB := layout.DecodeManifest(now.Manifest)
	x.Since = was.Since
	if errA == nil && errB == nil && m.Version != was.Version && computed(x, plans) && (state.NewVersion(x, is, was, m) || state.Attached(x, is, was, m)) {
		return state.MendVersion(before.Manifest, now.Manifest)
	}
	return state.MendManifest(before.Manifest, now.Manifest, renewed, state.Ended(x, is) || state.Decided(x, is))
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
func isInventory(id layout.ItemID, f ledger.Records) bool {
	m, err := layout.DecodeManifest(f.Manifest)
	if err != nil || m.Inventory == nil || m.Inventory.Digest != ledger.DigestOf(f.Inventory) {
		return false
	}
	inv, err := layout.DecodeInventory(f.Inventory)
	return err == nil && inv.Item == id && len(inv.Files) == m.Inventory.Files && inv.Bytes() == m.Inventory.Bytes
}

// mendInventory puts the inventory back that the manifest speaks of.
func mendInventory(before ledger.Records, mended *ledger.Records) []string {
	if bytes.Equal(before.Inventory, mended.Inventory) {
		return nil
	}
	m, err := layout.DecodeManifest(mended.Manifest)
	if err != nil || m.Inventory == nil ||
		ledger.DigestOf(before.Inventory) != m.Inventory.Digest || ledger.DigestOf(mended.Inventory) == m.Inventory.Digest {
		return nil
	}
	what := "changed "
	if mended.Inventory == nil {
		what = "removed "
	}
	mended.Inventory = before.Inventory
	return []string{what + layout.InventoryJSON}
}

// mendDeposits puts back what was known of the copies on targets: entries grow, and only what
// a later look found takes an entry's place.
func mendDeposits(before ledger.Records, mended *ledger.Records) []string {
	was, err := layout.DecodeDeposits(before.Deposits)
	if before.Deposits == nil || err != nil || bytes.Equal(before.Deposits, mended.Deposits) {
		return nil
	}
	is, err := layout.DecodeDeposits(mended.Deposits)
	switch {
	case mended.Deposits == nil:
		mended.Deposits = before.Deposits
		return []string{"removed " + layout.DepositsJSON}
	case err != nil:
		mended.Deposits = before.Deposits
		return []string{"left a record that cannot be used: " + err.Error()}
	}
	var gone []string
	for _, target := range slices.Sorted(maps.Keys(was.Targets)) {
		for version := range was.Targets[target] {
			if _, kept := is.Targets[target][version]; !kept {
				gone = append(gone, fmt.Sprintf("removed the copy of version %d on %s from %s", version, target, layout.DepositsJSON))
			}
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if mended.Deposits, err = was.Join(is).Encode(); err != nil {
		mended.Deposits = before.Deposits
	}
	slices.Sort(gone)
	return gone
}
