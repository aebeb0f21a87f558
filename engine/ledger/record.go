package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Changes are the files that differ, but for the lines of retired items.
func (f Records) Changes(id layout.ItemID, to Records) map[string][]byte {
	files := map[string][]byte{}
	f, to = f.atTip(), to.atTip()
	dir := layout.ItemDir(id) + "/"
	for name, pair := range map[string][2][]byte{
		layout.ManifestJSON: {f.Manifest, to.Manifest}, layout.ExecutionJSON: {f.Execution, to.Execution}, layout.InventoryJSON: {f.Inventory, to.Inventory},
		layout.DepositsJSON: {f.Deposits, to.Deposits},
	} {
		if !bytes.Equal(pair[0], pair[1]) {
			files[dir+name] = pair[1]
		}
	}
	return files
}

// FewChanges is how many items may differ from the checkpoint before another is
// written: so many are read in some hundredths of a second.
const FewChanges = 1000

// IsRecord tells the names of Records, below the item's folder.
func IsRecord(rest string) bool {
	return rest == layout.ManifestJSON || rest == layout.ExecutionJSON || rest == layout.InventoryJSON || rest == layout.DepositsJSON
}

// ItemDepth is how many folders below items/ an item's folder stands.
const ItemDepth = 5

// Records are the committed files of one item; nil where there is none.
type Records struct {
	Manifest, Execution, Inventory, Deposits []byte
	// Retired is where they last stood, of an item that is retired; zero: they stand.
	Retired layout.Standing
}

// atTip are the files that stand.
func (f Records) atTip() Records {
	if f.Retired != (layout.Standing{}) {
		return Records{}
	}
	return f
}

// Same reports whether two hold the same, wherever they stand.
func (f Records) Same(o Records) bool {
	return bytes.Equal(f.Manifest, o.Manifest) && bytes.Equal(f.Execution, o.Execution) && bytes.Equal(f.Inventory, o.Inventory) && bytes.Equal(f.Deposits, o.Deposits)
}

// ReadRecords reads an item's files.
func ReadRecords(r gitstore.Reader, id layout.ItemID) (f Records, err error) {
	if v, is := r.(gitstore.View); is {
		files, err := v.ReadFiles(layout.ItemDir(id), layout.ManifestJSON, layout.ExecutionJSON, layout.InventoryJSON, layout.DepositsJSON)
		if err != nil {
			return f, fmt.Errorf("item %s: %w", id, err)
		}
		return Records{Manifest: files[0], Execution: files[1], Inventory: files[2], Deposits: files[3]}, nil
	}
	dir := layout.ItemDir(id) + "/"
	for name, to := range map[string]*[]byte{
		layout.ManifestJSON: &f.Manifest, layout.ExecutionJSON: &f.Execution, layout.InventoryJSON: &f.Inventory,
		layout.DepositsJSON: &f.Deposits,
	} {
		data, err := r.ReadFile(dir + name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return f, fmt.Errorf("item %s: %w", id, err)
		}
		*to = data
	}
	return f, nil
}

func (f Records) Absent() bool { return f.Manifest == nil && f.Execution == nil }

// Sound tells whether the records can be used by themselves: what is not is
// nothing to hold others against.
func (f Records) Sound(id layout.ItemID) bool {
	_, sound := f.Usable(id)
	return sound
}

// Usable is Sound, and gives the execution record.
func (f Records) Usable(id layout.ItemID) (*state.Execution, bool) {
	x, err := state.Decode(f.Execution)
	if err != nil || x.Item != id {
		return nil, false
	}
	m, ok := layout.ManifestHead(f.Manifest)
	if !ok {
		m, err = layout.DecodeManifest(f.Manifest)
	}
	return x, err == nil && m.Item == id
}
