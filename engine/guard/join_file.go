package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// JoinFile unites one file of a history, as git's merge driver is given it: without the files
// beside it, so that a hold for what both sides changed in a manifest is left to the engine
// that sees the merge. ok is false where the file is none that joins.
func JoinFile(p string, base, a, b []byte, plans state.Plans) (united []byte, ok bool, err error) {
	_, rest, isItem := layout.ItemOfPath(p)
	switch {
	case bytes.Equal(a, b):
		return a, true, nil
	case isItem && rest == layout.ExecutionJSON:
		united, err = joinExecutions(a, b, plans)
	case isItem && rest == layout.ManifestJSON:
		out, _, errJoin := joinManifests(ledger.Records{Manifest: base}, ledger.Records{Manifest: a}, ledger.Records{Manifest: b})
		united, err = out.Manifest, errJoin
	case isItem && rest == layout.InventoryJSON:
		united = inventoryBeside(base, a, b)
	case isItem && rest == layout.DepositsJSON:
		united, err = joinDeposits(a, b)
	case p == layout.ControlsFile:
		united = joinControls(base, a, b)
	case strings.HasPrefix(p, layout.PinnedDir+"/"):
		if united = b; layout.PinnedPath(ledger.DigestOf(a)) == p {
			united = a
		}
	case path.Ext(p) == ".json":
		united, _, err = JoinJSON(base, a, b)
	default:
		return nil, false, nil
	}
	return united, err == nil, err
}

func joinExecutions(a, b []byte, plans state.Plans) ([]byte, error) {
	x, errA := state.Decode(a)
	y, errB := state.Decode(b)
	switch {
	case errA == nil && errB != nil:
		return a, nil
	case errB == nil && errA != nil:
		return b, nil
	case errA != nil:
		return nil, errA
	}
	united, err := state.Join(x, y)
	if err != nil {
		return nil, err
	}
	united.Recompute(plans)
	return united.Encode(), nil
}

// inventoryBeside is the inventory that the join of the manifests names, where both sides
// changed it: that with the greater digest.
func inventoryBeside(base, a, b []byte) []byte {
	switch {
	case bytes.Equal(a, base):
		return b
	case bytes.Equal(b, base):
		return a
	}
	return slices.MaxFunc([][]byte{a, b}, func(x, y []byte) int { return strings.Compare(ledger.DigestOf(x), ledger.DigestOf(y)) })
}

// joinControls unites how steps are switched, by step: what came later, three-way.
func joinControls(base, a, b []byte) []byte {
	var of [3]struct {
		Schema int                       `json:"schema"`
		Steps  map[string]map[string]any `json:"steps"`
	}
	for i, data := range [][]byte{base, a, b} {
		if len(data) > 0 && json.Unmarshal(data, &of[i]) != nil {
			return slices.MaxFunc([][]byte{a, b}, bytes.Compare)
		}
	}
	out, was := of[1], of[0]
	if out.Steps == nil {
		out.Steps = map[string]map[string]any{}
	}
	out.Schema = max(out.Schema, of[2].Schema)
	for step := range was.Steps { // enabled on one side, and left alone on the other
		_, inA := of[1].Steps[step]
		_, inB := of[2].Steps[step]
		if inA && !inB && valueText(of[1].Steps[step]) == valueText(was.Steps[step]) {
			delete(out.Steps, step)
		}
	}
	for step, theirs := range of[2].Steps {
		ours, there := of[1].Steps[step]
		before, known := was.Steps[step]
		switch {
		case !there && known && valueText(theirs) == valueText(before):
		case !there, controlRank(ours) < controlRank(theirs):
			out.Steps[step] = theirs
		}
	}
	data, err := layout.EncodeJSON(out)
	if err != nil {
		return slices.MaxFunc([][]byte{a, b}, bytes.Compare)
	}
	return data
}

func controlRank(c map[string]any) string { return fmt.Sprint(c["at"], " ", valueText(c)) }
