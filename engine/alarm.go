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
		if err := r.e.Alert.TellAlerts(ctx, false); err != nil && ctx.Err() == nil {
			r.tellGrave(err.Error())
		}
	}
}

// lastAlarm tells what is new at the end of a run.
func (r *run) lastAlarm(ctx context.Context) {
	if err := r.e.Alert.TellAlerts(ctx, true); err != nil {
		r.report(Report{Note: err.Error(), Grave: true})
	}
}
