package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"bagpipe/engine/state"
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
	saved := e.o.Now()
	every := func(d time.Duration) *time.Ticker { return time.NewTicker(d) }
	poll, beat, recover, settings := every(pollEvery), every(beatEvery), every(recoverEvery), every(settleEvery)
	defer func() { poll.Stop(); beat.Stop(); recover.Stop(); settings.Stop() }()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			err = e.store.Refresh(ctx)
		case <-beat.C:
			err = e.seat.Beat()
		case <-recover.C:
			e.saveChecked()
			if now := e.o.Now(); now.Sub(saved) > checkpointEvery {
				saved = now
				e.saveIndexSoon()
			}
			err = errors.Join(e.recoverLost(ctx), e.checkThresholds(ctx))
			if r.o.Watch {
				r.unstall()
			}
			e.offerTrials()
		case <-settings.C:
			err = e.syncSettings(ctx)
		case <-e.dirty:
			err = e.sync(ctx)
		}
		if ctx.Err() == nil {
			r.each(err)
		}
	}
}

// backoff is the pause after the failures-th failure in a row of a step.
func (e *Engine) backoff(s *state.Step, failures int) time.Duration {
	b := e.current().settings.backoff()
	if own := s.Backoff; own != nil && own.First > 0 {
		b.First = time.Duration(own.First)
		b.Most = max(b.Most, b.First)
	}
	if own := s.Backoff; own != nil && own.Most > 0 {
		b.Most = time.Duration(own.Most)
	}
	return b.Wait(failures, rand.Float64())
}
