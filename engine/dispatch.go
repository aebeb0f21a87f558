package engine

import (
	"context"
	"fmt"
	"time"

	"bagpipe/engine/attempt"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
)

// waitForRetry is how long a run that is not watching waits for a step that is to be
// tried again; what is due later is left for the next run.
const waitForRetry = 15 * time.Second

// dispatch hands ready steps to the pool until ctx ends; robots run until performing ends.
func (r *run) dispatch(ctx, performing context.Context) {
	may := func(id queue.StepID, s *state.Step) bool {
		return r.pool.May(id.String(), s.Instances) && r.warm.Ready(ctx, id, s)
	}
	inboxIdle, limitedSince := r.injected(), time.Time{}
	for !r.pool.Draining() && ctx.Err() == nil {
		busy := r.pool.Busy() > 0 // asked before Take, as finishing makes steps ready
		if why := r.e.Folder.Space.Low(); why != nil {
			if !r.pauseFor(ctx, why, busy) {
				return
			}
			continue
		}
		now := r.e.Ledger.Now()
		entry, ok, limited := r.e.Index.Loaded().Take(now, may)
		if ok {
			r.hand(entry)
			r.launch(ctx, performing, entry)
			limitedSince = time.Time{}
			continue
		}
		due, dated := r.warm.Due(r.e.Index.Loaded().NextDue())
		busy = busy || r.warm.Open()
		if limited && !busy { // by what other engines do
			if limitedSince.IsZero() {
				limitedSince = now
			}
			if until := limitedSince.Add(waitForRetry); !now.After(until) && (!dated || until.Before(due)) {
				due, dated = now.Add(time.Second), true
			}
		}
		pause := due.Sub(now)
		if (!r.o.Watch || r.spent()) && inboxIdle && !busy && (!dated || pause > waitForRetry) {
			return
		}
		if !dated {
			pause = time.Minute
		}
		timer := time.NewTimer(max(pause, ledger.Resolution))
		select {
		case <-r.e.Index.Loaded().Wake():
		case <-r.pool.Freed():
		case inboxIdle = <-r.inbox.idle:
		case <-timer.C:
		case <-r.o.Drain:
			r.pool.Drain()
		case <-r.pool.Drained():
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// pauseFor waits for free space; a run that is not watching ends instead, once
// nothing runs any more that might free some.
func (r *run) pauseFor(ctx context.Context, why error, busy bool) bool {
	if !r.o.Watch && !busy {
		r.halt(why)
		return false
	}
	r.tell(why.Error())
	select {
	case <-time.After(time.Second):
	case <-r.pool.Freed():
	case <-r.pool.Drained():
	case <-ctx.Done():
	}
	return true
}

// launch hands a step to the pool. Its commits are not ended by a signal, so that what
// finished is recorded.
func (r *run) launch(ctx, performing context.Context, entry queue.Entry) {
	w := r.e.Attempt.NewWork(entry, func() bool { return !r.o.Watch || r.pool.Draining() }, r.ended)
	r.pool.Go(performing, w.ForPool(context.WithoutCancel(ctx)))
}

// ended notes how a piece of work went, and lets its step be taken again.
func (r *run) ended(w *attempt.Work) {
	if w.Err != nil {
		r.broken(fmt.Errorf("%s of item %s: %w", w.Entry.Step, w.Entry.Item.ID.Short(), w.Err))
		r.stall(w.Entry)
		return
	}
	if w.Internal {
		r.failedInternally(itemRun{w.Entry.Item.ID, w.Entry.Run})
	}
	r.e.Index.Loaded().Return(w.Entry)
}

// stall keeps a step that met an error out of the queue: for the rest of a run that is
// not watching, else until unstall.
func (r *run) stall(entry queue.Entry) {
	r.stallMu.Lock()
	defer r.stallMu.Unlock()
	r.stalled = append(r.stalled, entry)
}

// unstall gives the steps back that met an error.
func (r *run) unstall() {
	r.stallMu.Lock()
	entries := r.stalled
	r.stalled = nil
	r.stallMu.Unlock()
	for _, entry := range entries {
		r.e.Index.Loaded().Return(entry)
	}
}
