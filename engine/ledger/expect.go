package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// ErrChanged is the refusal of a change to an item that is not as it was seen.
var ErrChanged = fault.New(fault.Refused, "it has changed since it was looked at")

// Stamp is a text that changes whenever an item's manifest or execution does.
func Stamp(r gitstore.Reader, id layout.ItemID) (string, error) {
	sum := sha256.New()
	for _, name := range []string{layout.ManifestJSON, layout.ExecutionJSON} {
		data, err := ReadOptional(r, layout.ItemDir(id)+"/"+name)
		if err != nil {
			return "", fmt.Errorf("read item %s: %w", id, err)
		}
		if data == nil {
			return "", NoRecords(r, id)
		}
		sum.Write(data) // a hash takes all
	}
	return hex.EncodeToString(sum.Sum(nil)[:12]), nil
}

type expectKey struct{}

type expected struct {
	id    layout.ItemID
	stamp string
	met   bool // a change was made: later ones of the same act see their own
}

// Expecting gives a context whose first change to the item is made only while its stamp is
// the one given. The stamp is compared where the change is made, so that no other change
// comes between the two. One goroutine at a time may act in it.
func Expecting(ctx context.Context, id layout.ItemID, stamp string) context.Context {
	return context.WithValue(ctx, expectKey{}, &expected{id: id, stamp: stamp})
}

func expectedOf(ctx context.Context, id layout.ItemID) *expected {
	x, _ := ctx.Value(expectKey{}).(*expected)
	if x == nil || x.met || x.id != id {
		return nil
	}
	return x
}

// check refuses an item that is not as expected; a nil x expects nothing.
func (x *expected) check(r gitstore.Reader) error {
	if x == nil {
		return nil
	}
	now, err := Stamp(r, x.id)
	if err == nil && now != x.stamp {
		err = fmt.Errorf("item %s: %w", x.id.Short(), ErrChanged)
	}
	return err
}
