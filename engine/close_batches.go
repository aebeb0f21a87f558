package engine

import (
	"context"
	"errors"
	"fmt"

	"bagpipe/engine/inbox"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
)

// closeSession closes the batch of what this run has taken in.
func (r *run) closeSession(ctx context.Context) {
	if r.o.Batch == "" || ctx.Err() != nil || r.pool.Draining() {
		return
	}
	var none *ledger.NoBatchError
	if err := r.e.Ledger.CloseBatch(r.ctx, r.o.Batch, r.e.Ledger.ByPerson()); err != nil && !errors.As(err, &none) {
		r.broken(err)
	}
}

// endBatches closes the batches whose folders are whole: by their marker, or as
// nothing has come for batchQuiet. One whose drops are still on their way to being
// items, in this engine or another, is left for the next scan. A crash between the
// commit and the end of the folder leaves an empty folder of a closed batch, which
// ends then.
func (r *run) endBatches(ctx context.Context, folders []inbox.BatchFolder) error {
	var errs []error
	for _, f := range folders {
		if f.Left > 0 || !f.Whole && f.Closed == "" || ctx.Err() != nil {
			continue
		}
		taken, err := r.box.HasTaken(f.Batch)
		if err == nil && !taken {
			err = r.endBatch(f)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("close batch %s: %w", f.Batch, err))
		}
	}
	return errors.Join(errs...)
}

func (r *run) endBatch(f inbox.BatchFolder) error {
	if f.Closed == "" {
		var none *ledger.NoBatchError
		err := r.e.Ledger.CloseBatch(r.ctx, f.Batch, r.e.Ledger.ByRobot(intake.RegisterStep))
		switch {
		case errors.As(err, &none) && !f.Marked:
			return nil // somebody made a folder, and has dropped nothing yet
		case err != nil && !errors.As(err, &none):
			return err
		case err == nil:
			r.report(Report{Note: "batch " + string(f.Batch) + " is whole, and closed"})
		}
	}
	return r.box.EndBatch(f)
}
