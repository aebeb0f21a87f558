package index

import (
	"context"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"
)

// Verified is what became of holding the index against the items.
type Verified struct {
	Items       int      `json:"items"`
	Differences []string `json:"differences"`
}

// VerifyIndex reads every item anew and compares with the index; Load must have been
// called. What others commit meanwhile may show as a difference.
func (ke *Keeper) VerifyIndex(ctx context.Context) (Verified, error) {
	v, err := ke.ledger.Store.Tip()
	if err != nil {
		return Verified{}, err
	}
	full := queue.New()
	if err := loadBatches(ke.ledger, v, full); err != nil {
		return Verified{}, err
	}
	f := full.Fill()
	if _, err := ke.fillSince(ctx, v, gitstore.Hash{}, f); err != nil {
		return Verified{}, err
	}
	f.Done()
	if err := ke.showRemoved(ctx, v, full); err != nil {
		return Verified{}, err
	}
	applyControls(ke.control, full)
	now := ke.ledger.Now()
	ke.index.Settle(now)
	full.Settle(now)
	diff := ke.index.Compare(full.View, now)
	if diff == nil {
		diff = []string{}
	}
	return Verified{Items: full.Len(), Differences: diff}, nil
}
