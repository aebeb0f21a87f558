package engine

import (
	"context"
	"errors"
	"fmt"

	"bagpipe/engine/inbox"
	"bagpipe/layout"
)

// whyClosed says why nothing may be added to a batch; empty: it may.
func (e *Engine) whyClosed(name layout.Name) string {
	if err := e.checkBatch(name); err != nil {
		return err.Error()
	}
	return ""
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
		var none *NoBatchError
		err := r.e.closeBatch(r.ctx, f.Batch, r.e.byRobot(registerStep))
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
