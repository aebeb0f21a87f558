package engine

import (
	"context"
	"fmt"
	"time"

	"bagpipe/engine/gitstore"
)

const (
	maintainEvery = 2000             // steps that may end before it is looked how many packs there are: each leaves one or a part of one
	packsFrom     = 200              // packs worth joining: fewer cost a reader little, and who waits for a run to end a third of a second
	idleFor       = 10 * time.Minute // without a step, before everything may be packed anew
)

// Maintain joins the store's small packs and brings its commit-graph up to date;
// compact packs everything anew. It holds no lock that a commit needs. It also
// looks at every record shown in the item folders.
func (e *Engine) Maintain(ctx context.Context, compact bool) (gitstore.Report, error) {
	if err := e.Ledger.Store.RepairAll(ctx); err != nil {
		return gitstore.Report{}, fmt.Errorf("bring the item folders in line with the history: %w", err)
	}
	if compact {
		return e.Ledger.Store.Compact(ctx)
	}
	return e.Ledger.Store.Maintain(ctx)
}

// maintain is the run's own upkeep, beside the work. A failure is told and does
// not end the run: nothing is lost by it, and the next one tries again.
func (r *run) maintain(ctx context.Context) {
	idle := time.NewTicker(idleFor)
	defer idle.Stop()
	before := r.endedSteps()
	for {
		do := r.e.Ledger.Store.Join
		select {
		case <-ctx.Done():
			return
		case <-r.upkeep:
			if r.e.Ledger.Store.Packs() < packsFrom {
				continue
			}
		case <-idle.C:
			now := r.endedSteps()
			if now != before {
				before = now
				continue
			}
			do = r.e.Ledger.Store.Maintain
		}
		r.told(ctx, do)
	}
}

// tidy joins what many short runs leave, none of which ever asked for upkeep.
func (r *run) tidy(ctx context.Context) {
	if r.e.Ledger.Store.Packs() >= packsFrom && ctx.Err() == nil {
		r.told(ctx, r.e.Ledger.Store.Join)
	}
}

func (r *run) told(ctx context.Context, do func(context.Context) (gitstore.Report, error)) {
	if _, err := do(ctx); err != nil && ctx.Err() == nil {
		r.e.Ledger.Log.Warn("maintain the store", "err", err)
		r.tellGrave("the store's upkeep failed, and will be tried again: " + err.Error())
	}
}

func (r *run) endedSteps() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.summary.Steps {
		n += k
	}
	return n
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
