package engine

import (
	"context"
	"time"

	"bagpipe/engine/alert"
)

// alarm tells the run's alerts what is new, now and then.
func (r *run) alarm(ctx context.Context) {
	tick := time.NewTicker(alert.AlertLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, err := range []error{r.e.Alert.TellAlerts(ctx, false), r.e.Notices.Tell(ctx, false)} {
			if err != nil && ctx.Err() == nil {
				r.tellGrave(err.Error())
			}
		}
	}
}

// lastAlarm tells what is new at the end of a run.
func (r *run) lastAlarm(ctx context.Context) {
	for _, err := range []error{r.e.Alert.TellAlerts(ctx, true), r.e.Notices.Tell(ctx, true)} {
		if err != nil {
			r.report(Report{Note: err.Error(), Grave: true})
		}
	}
}

// feedEvery is how long an activity waits for its feeds, at most.
const feedEvery = time.Second

// feed keeps the feeds of a workspace that has some; who reads them brings them up to date,
// too.
func (r *run) feed(ctx context.Context) {
	tick := time.NewTicker(feedEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if r.e.Feed.Wanted() {
			if err := r.e.Feed.Cycle(ctx); ctx.Err() == nil {
				r.each(err)
			}
		}
	}
}
