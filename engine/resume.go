package engine

import (
	"context"
	"errors"
	"fmt"
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
