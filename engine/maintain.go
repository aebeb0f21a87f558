package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/settings"
)

const (
	maintainEvery = 2000             // steps that may end before it is looked how many packs there are: each leaves one or a part of one
	packsFrom     = 200              // packs worth joining: fewer cost a reader little, and who waits for a run to end a third of a second
	idleFor       = 10 * time.Minute // without a step, before everything may be packed anew
)

// Maintain joins the store's small packs and brings its commit-graph up to date;
// compact packs everything anew. It holds no lock that a commit needs. It also
// looks at every record shown in the item folders, and removes what killed attempts left
// there.
func (e *Engine) Maintain(ctx context.Context, compact bool) (gitstore.Report, error) {
	if e.Ledger.ReadOnly {
		return gitstore.Report{}, gitstore.ErrReadOnly
	}
	if err := e.Ledger.Store.RepairAll(ctx); err != nil {
		return gitstore.Report{}, fmt.Errorf("bring the item folders in line with the history: %w", err)
	}
	if err := e.Attempt.Recovery.ForgetLeftovers(ctx); err != nil {
		return gitstore.Report{}, fmt.Errorf("remove what ended attempts left: %w", err)
	}
	if err := settings.SweepTemps(e.Ledger.Root, e.Ledger.Clock()); err != nil {
		return gitstore.Report{}, fmt.Errorf("remove temporary files of settings: %w", err)
	}
	if compact {
		return e.Ledger.Store.Compact(ctx)
	}
	return e.Ledger.Store.Maintain(ctx)
}

// JoinPacks joins the store's small packs whenever there are many, until ctx ends: where no run
// does it, as beside pages alone, each group of acts leaves a pack, and a reader asks them all.
func (e *Engine) JoinPacks(ctx context.Context) {
	const look = 5 * time.Second
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if e.Ledger.Store.Packs() < packsFrom {
			continue
		}
		if _, err := e.Ledger.Store.Join(ctx); err != nil && ctx.Err() == nil {
			e.Ledger.Log.Warn("join the store's packs", "err", err)
		}
	}
}

// upkeep keeps the store of a run quick to read, beside the work.
type upkeep struct {
	*account
	e     *Engine
	asked chan struct{}
	since atomic.Int64 // steps, or what is worth as many, since it was asked for
}

// run is the run's own upkeep, beside the work. A failure is told and does
// not end the run: nothing is lost by it, and the next one tries again.
func (u *upkeep) run(ctx context.Context) {
	idle := time.NewTicker(idleFor)
	defer idle.Stop()
	before := u.endedSteps()
	for {
		do := u.e.Ledger.Store.Join
		select {
		case <-ctx.Done():
			return
		case <-u.asked:
			if u.e.Ledger.Store.Packs() < packsFrom {
				continue
			}
		case <-idle.C:
			now := u.endedSteps()
			if now != before {
				before = now
				continue
			}
			do = u.e.Ledger.Store.Maintain
		}
		u.try(ctx, do)
	}
}

// last joins what many short runs leave, none of which ever asked for upkeep.
func (u *upkeep) last(ctx context.Context) {
	if u.e.Ledger.Store.Packs() >= packsFrom && ctx.Err() == nil {
		u.try(ctx, u.e.Ledger.Store.Join)
	}
}

func (u *upkeep) try(ctx context.Context, do func(context.Context) (gitstore.Report, error)) {
	if _, err := do(ctx); err != nil && ctx.Err() == nil {
		u.e.Ledger.Log.Warn("maintain the store", "err", err)
		u.tellGrave("the store's upkeep failed, and will be tried again: " + err.Error())
	}
}

// tookBranches counts branches for/NAME that were looked at: each leaves a pack, whatever else is done.
func (u *upkeep) tookBranches(n int) { u.did(n * maintainEvery / packsFrom) }

// did counts what is worth so many steps, and asks for upkeep once enough has been done since the last time.
func (u *upkeep) did(steps int) {
	if u.since.Add(int64(steps)) < maintainEvery {
		return
	}
	u.since.Store(0)
	select {
	case u.asked <- struct{}{}:
	default: // one is under way or asked for
	}
}
