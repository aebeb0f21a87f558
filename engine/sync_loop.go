package engine

import (
	"context"
	"time"

	"bagpipe/engine/sync"
)

// settingsLook is how often a run looks whether it is to sync, and how often.
const settingsLook = time.Second

// keepSynced joins the history with those of other sites while the run watches. A failure is told,
// once, and the next try comes at its time: sites work apart for as long as it takes.
func (e *Engine) keepSynced(ctx context.Context, tell func(string)) {
	tick := time.NewTicker(settingsLook)
	defer tick.Stop()
	var last time.Time
	for {
		if every := e.syncsEvery(); every > 0 && e.Ledger.Clock().Sub(last) >= every {
			e.syncOnce(ctx, tell)
			last = e.Ledger.Clock()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (e *Engine) syncsEvery() time.Duration {
	return time.Duration(e.Settings.Current().Settings.Sync.Every)
}

// lastSync tells other sites what the run did.
func (e *Engine) lastSync(ctx context.Context, tell func(string)) {
	if e.syncsEvery() > 0 && ctx.Err() == nil {
		e.syncOnce(ctx, tell)
	}
}

func (e *Engine) syncOnce(ctx context.Context, tell func(string)) {
	if _, err := sync.New(e.Ledger, e.Guard).Sync(ctx); err != nil && ctx.Err() == nil {
		tell(err.Error())
	}
}
