package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
)

// waitForRetry is how long a run that is not watching waits for a step that is to be
// tried again; what is due later is left for the next run.
const waitForRetry = 15 * time.Second

// dispatch hands ready steps to the pool.
func (r *run) dispatch(ctx context.Context) {
	inboxIdle, limitedSince := r.injected(), time.Time{}
	for !r.pool.Draining() && ctx.Err() == nil {
		busy := r.pool.Busy() > 0 // asked before Take, as finishing makes steps ready
		if why := r.e.space.low(); why != nil {
			if !r.pauseFor(ctx, why, busy) {
				return
			}
			continue
		}
		now := r.e.o.Now()
		entry, ok, limited := r.e.index.Take(now, r.may)
		if ok {
			r.hand(entry)
			r.launch(entry)
			limitedSince = time.Time{}
			continue
		}
		due, dated := r.warm.due(r.e.index.NextDue())
		busy = busy || r.warm.open()
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
		timer := time.NewTimer(max(pause, ms))
		select {
		case <-r.e.index.Wake():
		case <-r.pool.Freed():
		case inboxIdle = <-r.inboxIdle:
		case <-timer.C:
		case <-r.o.Drain:
			r.pool.Drain()
		case <-r.pool.Drained():
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// may tells whether one more of a step may be claimed by this process.
func (r *run) may(id queue.StepID, s *state.Step) bool {
	return r.pool.May(id.String(), s.Instances) && r.warm.ready(id, s)
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

func (r *run) launch(entry queue.Entry) {
	w := r.e.newWork(r.ctx, entry, r.o.Watch, r.pool.Draining, r.ended)
	r.pool.Go(w.forPool())
}

// ended notes how a piece of work went, and lets its step be taken again.
func (r *run) ended(w *work) {
	if w.err != nil {
		r.broken(fmt.Errorf("%s of item %s: %w", w.entry.Step, w.entry.Item.ID.Short(), w.err))
		r.stall(w.entry)
		return
	}
	if w.internal {
		r.mu.Lock()
		r.internal[itemRun{w.entry.Item.ID, w.entry.Run}] = true
		r.mu.Unlock()
	}
	r.e.index.Return(w.entry)
}

// stall keeps a step that met an error out of the queue: for the rest of a run that is
// not watching, else until unstall.
func (r *run) stall(entry queue.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalled = append(r.stalled, entry)
}

// unstall gives the steps back that met an error.
func (r *run) unstall() {
	r.mu.Lock()
	entries := r.stalled
	r.stalled = nil
	r.mu.Unlock()
	for _, entry := range entries {
		r.e.index.Return(entry)
	}
}

// ending gives the error that ends the run, if there is one.
func (r *run) ending() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault
}

// broken notes an error. One that stops all ends a run that is not watching; one that
// is goes on, as the cause (a full disk) may pass, unless going on could do harm.
func (r *run) broken(err error) {
	switch {
	case !stopsAll(err):
		r.mishap(err)
	case r.o.Watch && !mustStop(err):
		r.tell(err.Error())
	default:
		r.halt(err)
	}
}

// halt ends the run with an error, once what is at work has finished.
func (r *run) halt(err error) {
	r.mu.Lock()
	if r.fault == nil {
		r.fault = err
	}
	r.mu.Unlock()
	r.pool.Drain()
}

// mustStop tells the errors after which this engine may not act any more: the
// branch was rewritten, or others take the engine for dead.
func mustStop(err error) bool {
	var diverged *gitstore.DivergedError
	return errors.As(err, &diverged) || errors.Is(err, claim.ErrLost)
}
