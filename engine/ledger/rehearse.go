package ledger

import (
	"context"
	"errors"
)

// ErrRehearsed is the answer to a change that would be made.
var ErrRehearsed = errors.New("nothing was changed: it was rehearsed")

type rehearseKey struct{}

// Rehearse gives a context in which no change is made to an item: one that could be is
// answered with ErrRehearsed, one that could not with its refusal.
func Rehearse(ctx context.Context) context.Context {
	return context.WithValue(ctx, rehearseKey{}, true)
}

// Rehearsing reports whether ctx comes from Rehearse.
func Rehearsing(ctx context.Context) bool { return ctx.Value(rehearseKey{}) != nil }
