package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"bagpipe/engine/fault"
	"bagpipe/engine/inbox"
	"bagpipe/engine/intake"
)

// closeSession closes the batch of what this run has taken in.
func (l *inboxLoop) closeSession(ctx context.Context) {
	if l.batch == "" || ctx.Err() != nil || l.pool.Draining() {
		return
	}
	if err := l.e.Ledger.CloseBatch(context.WithoutCancel(ctx), l.batch, cmp.Or(l.by, l.e.Ledger.ByPerson())); err != nil && !fault.Is(err, fault.NotFound) {
		l.broken(err)
	}
}

// endBatches closes the batches whose folders are whole: by their marker, or as
// nothing has come for batchQuiet. One whose drops are still on their way to being
// items, in this engine or another, is left for the next scan. A crash between the
// commit and the end of the folder leaves an empty folder of a closed batch, which
// ends then.
func (l *inboxLoop) endBatches(ctx context.Context, folders []inbox.BatchFolder) error {
	var errs []error
	for _, f := range folders {
		if f.Left > 0 || !f.Whole && f.Closed == "" || ctx.Err() != nil {
			continue
		}
		taken, err := l.box.HasTaken(f.Batch)
		if err == nil && !taken {
			err = l.endBatch(ctx, f)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("close batch %s: %w", f.Batch, err))
		}
	}
	return errors.Join(errs...)
}

func (l *inboxLoop) endBatch(ctx context.Context, f inbox.BatchFolder) error {
	if f.Closed == "" {
		err := l.e.Ledger.CloseBatch(context.WithoutCancel(ctx), f.Batch, l.e.Ledger.ByRobot(intake.RegisterStep))
		switch {
		case fault.Is(err, fault.NotFound) && !f.Marked:
			return nil // somebody made a folder, and has dropped nothing yet
		case err != nil && !fault.Is(err, fault.NotFound):
			return err
		case err == nil:
			l.report(Report{Note: "batch " + string(f.Batch) + " is whole, and closed"})
		}
	}
	return l.box.EndBatch(f)
}
