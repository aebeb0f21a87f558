package desk

import (
	"context"
	"io"
	"net/http"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/queue"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/web/access"
)

// Lender lends steps that are marked external to programs. An attempt is the account's that
// claimed it; of any other, and of one that has ended, the answer is fault.Refused.
type Lender interface {
	// Claim waits for a step until ctx ends; ok is false where there was none.
	// request is that which the commit answers.
	Claim(ctx context.Context, account, request string, want func(queue.StepID) bool) (l wire.Leased, ok bool, err error)
	// Leased words again how an attempt was granted.
	Leased(h wire.Held) wire.Leased
	// Keep gives an attempt a whole lease, and notes how far it has come.
	Keep(account string, t wire.Told) (lease time.Duration, err error)
	Given(ctx context.Context, account string, h wire.Held) (wire.Given, error)
	ServeFile(w http.ResponseWriter, q *http.Request, account string, h wire.Held, path string) error
	// Put takes a part of a file, at the offset that the file has.
	Put(ctx context.Context, account string, h wire.Held, path string, offset int64, digest string, body io.Reader) error
	// End ends an attempt, and answers when that is committed; request is that which the commit answers.
	End(ctx context.Context, account, request string, h wire.Held, e wire.Ended) error
}

// Lends gives the lender and the account of who asks, which needs a role for it and reaches
// every collection.
func (d *Desk) Lends(ctx context.Context) (l Lender, account string, err error) {
	who := Who(ctx)
	switch {
	case d.ReadOnly:
		return nil, "", ErrReadOnly
	case !who.Role.May(access.Operator):
		return nil, "", NeedsRole(who, access.Operator)
	case len(who.Collections) > 0:
		return nil, "", NeedsAll(who)
	case d.Lender == nil:
		return nil, "", fault.New(fault.Busy, "no engine lends steps here: it runs elsewhere, or not at all")
	}
	return d.Lender, who.Email, nil
}
