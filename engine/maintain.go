package engine

import (
	"context"
	"fmt"

	"bagpipe/engine/gitstore"
)

// maintainEvery is how many steps may end before the store is maintained: each
// leaves a small pack or a part of one.
const maintainEvery = 2000

// Maintain joins the store's small packs and brings its commit-graph up to date;
// compact packs everything anew. It holds no lock that a commit needs. It also
// looks at every record shown in the item folders.
func (e *Engine) Maintain(ctx context.Context, compact bool) (gitstore.Report, error) {
	if err := e.store.RepairAll(ctx); err != nil {
		return gitstore.Report{}, fmt.Errorf("bring the item folders in line with the history: %w", err)
	}
	if compact {
		return e.store.Compact(ctx)
	}
	return e.store.Maintain(ctx)
}

// maintain is the run's own upkeep, beside the work. A failure is told and does
// not end the run: nothing is lost by it, and the next one tries again.
func (r *run) maintain(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.upkeep:
		}
		if _, err := r.e.store.Maintain(ctx); err != nil && ctx.Err() == nil {
			r.e.o.Log.Warn("maintain the store", "err", err)
			r.tell("the store's upkeep failed, and will be tried again: " + err.Error())
		}
	}
}

// due asks for upkeep once enough has been done since the last time.
func (r *run) due() {
	if r.since++; r.since < maintainEvery {
		return
	}
	r.since = 0
	select {
	case r.upkeep <- struct{}{}:
	default: // one is under way or asked for
	}
}
