package guard

import (
	"bytes"
	"context"
	"fmt"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
)

// JoinMessage words the commit that joins two, whichever of them comes first.
func JoinMessage(a, b gitstore.Hash) string {
	if b.String() < a.String() {
		a, b = b, a
	}
	subject := fmt.Sprintf("join: %s and %s", a.String()[:12], b.String()[:12])
	return ledger.Message(subject, "", []ledger.Trailer{{"Bagpipe-Agent", "bagpipe join"}})
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
	return l.Store.JoinCommit(ctx, [2]gitstore.Hash{a, b}, files, JoinMessage(a, b))
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
	for p, data := range is {
		if expected, there := want[p]; !there || (data == nil) != (expected == nil) || !bytes.Equal(data, expected) {
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
		if err != nil || (data == nil) != (old == nil) || !bytes.Equal(data, old) {
			return false, err
		}
	}
	return true, nil
}
