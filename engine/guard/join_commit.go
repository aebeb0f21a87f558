package guard

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// JoinMessage words the commit that joins two, whichever of them comes first.
func JoinMessage(a, b gitstore.Hash, diverged ...string) string {
	if b.String() < a.String() {
		a, b = b, a
	}
	subject := fmt.Sprintf("join: %s and %s", a.String()[:12], b.String()[:12])
	trailers := []ledger.Trailer{{"Bagpipe-Agent", "bagpipe join"}}
	for i, d := range diverged {
		if i == maxDiverged {
			break
		}
		trailers = append(trailers, ledger.Trailer{"Bagpipe-Diverged", d})
	}
	return ledger.Message(subject, "", trailers)
}

// maxDiverged bounds the divergences that a join's message names.
const maxDiverged = 100

// Diverged names the steps, as ITEM WORKFLOW/STEP, that were done with other outputs on either
// side of a join, by the files that it has of items.
func Diverged(l *ledger.Ledger, at gitstore.Reader, files map[string][]byte) (all []string) {
	plans := l.PlansAt(at)
	for p, data := range files {
		id, rest, ok := layout.ItemOfPath(p)
		if !ok || rest != layout.ExecutionJSON || !bytes.Contains(data, []byte(`"outputs"`)) {
			continue
		}
		x, err := state.Decode(data)
		if err != nil {
			continue
		}
		for _, d := range state.Divergences(x, plans, "") {
			all = append(all, string(id)+" "+d.Workflow+"/"+string(d.Step))
		}
	}
	slices.Sort(all)
	return all
}

// JoinCommit writes the commit that joins two: a function of them, byte for byte, whichever
// comes first. base is what both began from.
func JoinCommit(ctx context.Context, l *ledger.Ledger, base, a, b gitstore.Hash) (gitstore.Hash, error) {
	if b.String() < a.String() {
		a, b = b, a
	}
	files, err := JoinTrees(ctx, l, base, a, b)
	if err != nil {
		return a, err
	}
	v, err := l.Store.At(a)
	if err != nil {
		return a, err
	}
	return l.Store.JoinCommit(ctx, [2]gitstore.Hash{a, b}, files, JoinMessage(a, b, Diverged(l, v, files)...))
}

// IsJoin reports whether a commit with two parents holds what JoinCommit of them would.
func IsJoin(ctx context.Context, l *ledger.Ledger, c gitstore.Commit) (bool, error) {
	if len(c.Parents) != 2 {
		return false, nil
	}
	a, b := c.Parents[0], c.Parents[1]
	base, err := l.Store.Base(ctx, a, b)
	if err != nil || base.IsZero() || b.String() < a.String() {
		return false, err
	}
	want, err := JoinTrees(ctx, l, base, a, b)
	if err != nil {
		return false, err
	}
	is, err := changes(ctx, l, a, c.Hash)
	if err != nil {
		return false, err
	}
	now, err := l.Store.At(c.Hash)
	if err != nil {
		return false, err
	}
	same := func(p string, expected, data []byte) bool {
		return (data == nil) == (expected == nil) && (bytes.Equal(data, expected) || bytes.Equal(data, asBefore(l.PlansAt(now), p, expected)))
	}
	for p, data := range is {
		if expected, there := want[p]; !there || !same(p, expected, data) {
			return false, nil
		}
		delete(want, p)
	}
	if len(want) == 0 {
		return true, nil
	}
	v, err := l.Store.At(a)
	if err != nil {
		return false, err
	}
	for p, data := range want { // those that are in a as they are to be
		old, err := ledger.ReadOptional(v, p)
		if err != nil || !same(p, data, old) {
			return false, err
		}
	}
	return true, nil
}

// asBefore is an execution record as joins before wrote it, see state.EncodeBefore; nil of any
// other file.
func asBefore(plans state.Plans, path string, data []byte) []byte {
	if _, rest, ok := layout.ItemOfPath(path); !ok || rest != layout.ExecutionJSON {
		return nil
	}
	x, err := state.Decode(data)
	if err != nil {
		return nil
	}
	x.Recompute(plans)
	return state.EncodeBefore(x)
}
