package engine

import (
	"context"
	"errors"
	"time"

	"bagpipe/engine/index"
)

const (
	pollEvery    = 200 * time.Millisecond // for what other writers did to the branch
	beatEvery    = 10 * time.Second
	recoverEvery = 2 * time.Second
	settleEvery  = 6 * time.Second // for settings edited in place
)

// tend does what has to be done now and then: see what others committed, show
// that this engine lives, take up the work of dead ones, take in settings.
func (r *run) tend(ctx context.Context) {
	e := r.e
	saved := e.Ledger.Now()
	every := func(d time.Duration) *time.Ticker { return time.NewTicker(d) }
	poll, beat, recover, settings := every(pollEvery), every(beatEvery), every(recoverEvery), every(settleEvery)
	defer func() { poll.Stop(); beat.Stop(); recover.Stop(); settings.Stop() }()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			err = e.Ledger.Store.Refresh(ctx)
		case <-beat.C:
			err = e.Ledger.Seat.Beat()
		case <-recover.C:
			e.Guard.SaveChecked()
			if now := e.Ledger.Now(); now.Sub(saved) > index.CheckpointEvery {
				saved = now
				e.Index.SaveIndexSoon()
			}
			err = errors.Join(e.Attempt.Recovery.RecoverLost(ctx), e.Control.CheckThresholds(ctx))
			if r.o.Watch {
				r.unstall()
			}
			e.Index.OfferTrials()
		case <-settings.C:
			err = e.Settings.Sync(ctx)
		case <-e.Settings.Changed():
			err = e.sync(ctx)
		}
		if ctx.Err() == nil {
			r.each(err)
		}
	}
}
