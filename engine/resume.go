package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"bagpipe/layout"
)

// repairFolders brings the records shown in the item folders in line with the
// history: what changed since the last engine before anything else; and of up to some
// thousand items every one, beside the work, which finds those edited in place. Of more,
// maintain does.
func (e *Engine) repairFolders(ctx context.Context) error {
	const fewEnough = 10_000
	if err := e.Ledger.Store.Repair(ctx); err != nil {
		return fmt.Errorf("bring the item folders in line with the history: %w", err)
	}
	if e.Index.Loaded().Len() <= fewEnough {
		e.Ledger.Store.RepairRest()
	}
	return nil
}

// resume takes up what dead engines left: scratch, intake, attempts.
func (r *run) resume(ctx context.Context) error {
	e := r.e
	r.each(e.Attempt.Recovery.RecoverLost(ctx))
	r.each(e.Attempt.Recovery.SweepScratch(e.Ledger.Seat.Alive))
	r.each(e.Attempt.Recovery.SweepClaims())
	if err := r.ending(); err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	var err error
	r.inbox.left, err = e.Intake.ResumeIntake(ctx, r.inbox.box, nil, r.admitted)
	r.each(err)
	return errors.Join(r.ending(), ctx.Err())
}

// adopt takes up what workers do for an engine that is gone.
func (r *run) adopt(ctx context.Context) error {
	guests, err := r.e.Ledger.Seat.Engine()
	if err != nil {
		return err
	}
	engines, err := guests.Engines()
	if err != nil {
		return err
	}
	workers := map[layout.EngineID]string{}
	for _, one := range engines {
		if one.Worker != "" && one.Alive {
			workers[one.ID] = one.Worker
		}
	}
	n, err := r.o.Workers.Adopt(workers, r.hurried, r.ended)
	if n > 0 {
		r.tell(layout.Count(n, "attempt") + " of workers under way")
	}
	return err
}

// begin adopts what workers do, and lets them in, until side ends.
func (r *run) begin(ctx, side context.Context, wg *sync.WaitGroup) error {
	if r.o.Workers == nil {
		return nil
	}
	if err := r.adopt(ctx); err != nil {
		return err
	}
	wg.Go(func() {
		if err := r.o.Workers.Run(side); err != nil && side.Err() == nil {
			r.broken(fmt.Errorf("serve workers: %w", err))
		}
	})
	return nil
}
