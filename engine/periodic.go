package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bagpipe/engine/delivery"
	"bagpipe/engine/index"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

const (
	pollEvery    = 200 * time.Millisecond // for what other writers did to the branch
	beatEvery    = 10 * time.Second
	recoverEvery = 2 * time.Second
	settleEvery  = 6 * time.Second // for settings that could not be taken in, or whose edit was not seen
	editsLook    = 400 * time.Millisecond
)

// tend does what has to be done now and then: see what others committed, show
// that this engine lives, take up the work of dead ones, take in settings.
func (r *run) tend(ctx context.Context) {
	e := r.e
	saved := e.Ledger.Now()
	every := func(d time.Duration) *time.Ticker { return time.NewTicker(d) }
	poll, beat, recover, settle, looks := every(pollEvery), every(beatEvery), every(recoverEvery), every(settleEvery), every(editsLook)
	defer func() { poll.Stop(); beat.Stop(); recover.Stop(); settle.Stop(); looks.Stop() }()
	edits := settings.NewEdits(e.Ledger.Path)
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
			err = errors.Join(e.Attempt.Recovery.RecoverLost(ctx), e.Control.CheckThresholds(ctx), e.Catalog.ScanWanted(ctx))
			if r.o.Watch {
				r.stalls.giveBack(r.e.Index.Loaded())
			}
			if r.e.Schedule.IsShutDown() {
				r.tellGrave("a person shut the engines down: steps at work end, and nothing begins any more")
				r.pool.Drain()
			}
			e.Index.OfferTrials()
		case <-looks.C:
			seldom(looks, editsLook, func() {
				if edits.Due() {
					err = e.Settings.Sync(ctx)
				}
			})
		case <-settle.C:
			seldom(settle, settleEvery, func() { err = e.Settings.Sync(ctx) })
		case <-e.Settings.Changed():
			err = e.sync(ctx)
		}
		if ctx.Err() == nil {
			r.each(err)
		}
	}
}

// lookShare bounds what looks at settings take of a processor: one is followed by a pause that is so
// many times as long.
const lookShare = 300

// seldom does what a ticker says, and has the next be later where very many settings make it slow.
func seldom(t *time.Ticker, every time.Duration, do func()) {
	begun := time.Now()
	do()
	t.Reset(max(every, min(lookShare*time.Since(begun), 5*time.Minute)))
}

// deliverEvery is how often a watching run looks what has to be delivered.
const deliverEvery = time.Second

// deliver brings items where delivery rules say, beside the work.
func (r *run) deliver(ctx context.Context) {
	tick := time.NewTicker(deliverEvery)
	defer tick.Stop()
	defer r.e.Delivery.Wait()
	for ctx.Err() == nil {
		r.deliverOnce(ctx, deliverPatience)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// deliverPatience is how long a watching run waits for targets that do not answer, before it goes on with others.
const deliverPatience = 5 * time.Second

// deliverOnce sends what is ready. A target that fails is told of, and ends nothing.
func (r *run) deliverOnce(ctx context.Context, patience time.Duration) {
	err := r.e.Delivery.Pass(ctx, patience, func(t delivery.Told) {
		if t.State != layout.DeliveryDelivered {
			r.undelivered.Add(1)
			r.tellGrave(fmt.Sprintf("item %s was not delivered to %s (%s): %s", t.Item.Short(), t.Target, t.State, t.Text))
		}
	})
	if err != nil && ctx.Err() == nil {
		r.tellGrave("deliveries: " + err.Error())
	}
}
