package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"bagpipe/engine/attempt"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/remote"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
)

// waitForRetry is how long a run that is not watching waits for a step that is to be
// tried again, and in all for steps that ask for a later call each time; what is due later is
// left for the next run.
const waitForRetry = 15 * time.Second

// mostRescans is how often such a run looks again at objects in place that changed meanwhile.
const mostRescans = 3

// dispatch hands ready steps to the pool until ctx ends; robots run until performing ends.
func (r *run) dispatch(ctx, performing context.Context) {
	lent := map[queue.StepID]bool{} // as May said last
	may := func(id queue.StepID, s *state.Step) bool {
		if !r.injected() && !r.e.Schedule.Shifts.Lets(id) {
			return false
		}
		s = r.e.Settings.Deployed(id.Workflow, s)
		var open bool
		if lent[id], open = r.away(id, s); lent[id] {
			return open
		}
		return r.pool.May(id.String(), s.Instances, s.Prefetch) && r.warm.Ready(ctx, id, s)
	}
	inboxIdle, limitedSince, rescans := r.injected(), time.Time{}, 0
	for !r.pool.Draining() && ctx.Err() == nil {
		busy := r.pool.Busy() > 0      // asked before Take, as finishing makes steps ready
		wanted := r.e.Catalog.Wanted() // as does a look at what has changed; steps ask for it before they end
		if why := r.e.Folder.Space.Low(); why != nil {
			if !r.pauseFor(ctx, why, busy) {
				return
			}
			continue
		}
		now := r.e.Ledger.Now()
		entry, ok, limited := r.e.Index.Loaded().Take(now, may)
		if ok && attempt.AwaitsBytes(r.e.Attempt, entry) {
			r.stalls.add(entry)
			continue
		}
		offered := ok && lent[entry.ID()] && r.o.Workers != nil // whom it is for is asked then
		aimed := ok && !offered && r.aimed(entry)
		if aimed && r.o.Workers == nil { // the engine that has the workers gives it to one
			r.stalls.add(entry)
			continue
		}
		if ok {
			r.hand(entry)
			r.e.Schedule.Shifts.Began(entry)
			if lent[entry.ID()] || aimed {
				r.lend(entry)
			} else {
				r.launch(ctx, performing, entry)
			}
			limitedSince = time.Time{}
			continue
		}
		due, dated := r.e.Index.Loaded().NextDue()
		due, dated = r.warm.Due(due, dated, !r.o.Watch)
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
		if (!r.o.Watch || r.spent()) && inboxIdle && !busy && (!dated || pause > waitForRetry || r.defersLong(now)) {
			if rescans == mostRescans || !wanted {
				return
			}
			rescans++
			r.each(r.e.Catalog.ScanWanted(ctx))
			continue
		}
		if !dated {
			pause = time.Minute
		}
		inboxIdle = r.await(ctx, pause, inboxIdle)
	}
}

// await waits until there may be something to hand out, for no longer than pause; it gives
// whether the inbox is idle now.
func (r *run) await(ctx context.Context, pause time.Duration, inboxIdle bool) bool {
	timer := time.NewTimer(max(pause, ledger.Resolution))
	defer timer.Stop()
	select {
	case <-r.e.Index.Loaded().Wake():
	case <-r.pool.Freed():
	case <-r.e.Schedule.Shifts.Opened():
	case inboxIdle = <-r.inbox.idle:
	case <-timer.C:
	case <-r.o.Drain:
		r.pool.Drain()
	case <-r.pool.Drained():
	case <-ctx.Done():
	}
	return inboxIdle
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
	r.pool.Go(performing, newWork(ctx, r, entry).ForPool(context.WithoutCancel(ctx)))
}

func newWork(ctx context.Context, r *run, entry queue.Entry) *attempt.Work {
	w := r.e.Attempt.NewWork(entry, r.hurried, r.ended)
	if !r.injected() && r.o.Workers == nil {
		w.GoOn = func(n int) *attempt.Work { return goOn(ctx, r, entry, n) }
	}
	return w
}

// goOn takes step n of the run of an entry that is about to end, where dispatch would do so next;
// nil: it does not.
func goOn(ctx context.Context, r *run, before queue.Entry, n int) *attempt.Work {
	index := r.e.Index.Loaded()
	if ctx.Err() != nil || r.pool.Draining() || r.e.Folder.Space.Low() != nil {
		return nil
	}
	entry, ok := index.TakeNext(r.e.Ledger.Now(), before, n, func(id queue.StepID, s *state.Step) bool {
		if !r.e.Schedule.Shifts.Lets(id) {
			return false
		}
		s = r.e.Settings.Deployed(id.Workflow, s)
		away, _ := r.away(id, s)
		return !away && r.pool.MayFollow(id.String(), s.Instances, s.Prefetch) && r.warm.Ready(ctx, id, s)
	})
	if !ok {
		return nil
	}
	id := entry.ID()
	s := r.e.Settings.Deployed(id.Workflow, &entry.Item.Run(entry.Run).Plan.Steps[entry.N])
	if r.aimed(entry) || !r.pool.Follow(id.String(), s.Instances, s.Prefetch) {
		index.Return(entry)
		return nil
	}
	r.e.Schedule.Shifts.Began(entry)
	w := newWork(ctx, r, entry)
	w.Forgo = func() { r.pool.Forgo(id.String()) }
	return w
}

// ended notes how a piece of work went, and lets its step be taken again.
func (r *run) ended(w *attempt.Work) {
	defer r.e.Schedule.Shifts.Left(w.Entry)
	if errors.Is(w.Err, syscall.ENOSPC) || errors.Is(w.Err, syscall.EDQUOT) { // it is so of all
		r.e.Folder.Space.Refused()
		r.e.Index.Loaded().Return(w.Entry)
		return
	}
	if w.Err != nil {
		r.broken(fmt.Errorf("%s of item %s: %w", w.Entry.Step, w.Entry.Item.ID.Short(), w.Err))
		r.stalls.add(w.Entry)
		return
	}
	if w.Outcome != attempt.Deferred {
		r.deferring.Store(nil)
	} else {
		now := r.e.Ledger.Now()
		r.deferring.CompareAndSwap(nil, &now)
	}
	if w.Outcome == attempt.Internal {
		r.failedInternally(itemRun{w.Entry.Item.ID, w.Entry.Run})
	}
	r.e.Index.Loaded().Return(w.Entry)
}

// defersLong reports whether steps have asked for a later call, and done nothing else, for
// longer than they are waited for.
func (r *run) defersLong(now time.Time) bool {
	since := r.deferring.Load()
	return since != nil && now.Sub(*since) > waitForRetry
}

// stalls are steps that met an error, or wait for the item's bytes. They are kept out of the queue: for the rest of a run that
// is not watching, else until they are given back.
type stalls struct {
	mu      sync.Mutex // guards entries
	entries []queue.Entry
}

func (s *stalls) add(entry queue.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, entry)
}

func (s *stalls) giveBack(index *queue.Index) {
	s.mu.Lock()
	entries := s.entries
	s.entries = nil
	s.mu.Unlock()
	for _, entry := range entries {
		index.Return(entry)
	}
}

// away reports whether a step is to be done by a worker, and whether one more may be taken.
func (r *run) away(id queue.StepID, s *state.Step) (away, may bool) {
	if r.o.Workers == nil {
		p, placed := r.e.Settings.Current().Settings.Workers.Placed(id.Workflow, string(id.Step))
		return s.External || placed && p.Only && settings.StaysHere(s, attempt.Abroad{Attempts: r.e.Attempt}.Robots(), r.e.Settings.Current().Asks()) == "", false
	}
	where := r.o.Workers.May(id, s)
	return where != remote.Here, where == remote.Away
}

// aimed reports whether a step is placed on workers, and its item is for one of them.
func (r *run) aimed(entry queue.Entry) bool {
	run := entry.Item.Run(entry.Run)
	if run == nil {
		return false
	}
	id, abroad := entry.ID(), attempt.Abroad{Attempts: r.e.Attempt}
	_, placed := r.e.Settings.Current().Settings.Workers.Placed(id.Workflow, string(id.Step))
	return placed && settings.StaysHere(&run.Plan.Steps[entry.N], abroad.Robots(), r.e.Settings.Current().Asks()) == "" && abroad.Target(entry.Item.ID) != ""
}

// hurried reports whether an end that cannot be committed is given up after a few tries.
func (r *run) hurried() bool { return !r.o.Watch || r.pool.Draining() }

// lend puts a step on offer.
func (r *run) lend(entry queue.Entry) {
	id := entry.ID()
	var s *state.Step
	if run := entry.Item.Run(entry.Run); run != nil {
		s = &run.Plan.Steps[entry.N]
	}
	w := attempt.Abroad{Attempts: r.e.Attempt}.NewAway(entry, r.hurried, r.ended)
	if s.External {
		r.o.Workers.Hand(w, id)
		return
	}
	r.o.Workers.Offer(w, id, s)
}
