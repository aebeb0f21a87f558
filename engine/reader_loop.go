package engine

import (
	"context"
	"maps"
	"slices"
	"time"
)

// readOnce calls the readers that are called by themselves.
func (r *run) readOnce(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-r.o.Drain:
			stop()
		case <-ctx.Done():
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(r.e.Settings.Current().Settings.Readers)) {
		if r.e.Settings.Current().Settings.Readers[name].Every > 0 && ctx.Err() == nil {
			r.callReader(ctx, name)
		}
	}
}

func (r *run) callReader(ctx context.Context, name string) {
	o, err := r.e.Reader.Read(ctx, name)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.mishap(err)
	case o.Trouble():
		r.tellGrave(o.String())
	case len(o.Taken) > 0:
		r.tell(o.String())
	}
	for _, got := range o.Taken {
		r.admitted(got)
	}
}

// keepReading calls them at their times while the run watches.
func (r *run) keepReading(ctx context.Context) {
	tick := time.NewTicker(settingsLook)
	defer tick.Stop()
	last := map[string]time.Time{}
	for {
		readers := r.e.Settings.Current().Settings.Readers
		for _, name := range slices.Sorted(maps.Keys(readers)) {
			every, now := time.Duration(readers[name].Every), r.e.Ledger.Clock()
			if every > 0 && now.Sub(last[name]) >= every && ctx.Err() == nil {
				r.callReader(ctx, name)
				last[name] = now
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
