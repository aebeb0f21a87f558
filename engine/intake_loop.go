package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/inbox"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// scan looks at the inbox, by the settings that are committed when it ends.
func (r *run) scan(ctx context.Context) (inbox.Found, error) {
	for {
		r.resettle()
		found, err := r.box.Scan(ctx)
		r.each(err) // the rest is complete
		if ctx.Err() != nil || len(found.Settled)+len(found.Bad)+len(found.Batches) == 0 {
			return found, ctx.Err()
		}
		if changed, err := r.e.Settings.CatchUp(ctx); err != nil || !changed {
			return found, err
		}
	}
}

// intake scans the inbox: once, waiting for what is about to settle, or on and
// on when watching.
func (r *run) intake(ctx context.Context) {
	if r.o.Watch {
		err := r.watchInbox(ctx)
		if err != nil && ctx.Err() == nil {
			r.broken(fmt.Errorf("watch the inbox: %w", err))
		}
		return
	}
	// A drop made just before this command settles within the quiet time; one
	// that grows all the while is left for the next run.
	patience := r.e.Ledger.Clock().Add(2*r.e.Settings.Current().Settings.Quiet() + time.Second)
	for {
		waiting, more := r.takeIn(ctx)
		next, ok := soonest(waiting, patience)
		if more { // when there is room
			next, ok = r.e.Ledger.Clock().Add(roomEvery), true
		}
		if !ok && r.awaitBound(ctx) {
			continue
		}
		if !ok || ctx.Err() != nil || r.pool.Draining() {
			r.growing(waiting)
			r.closeSession(ctx)
			r.inboxIdle <- true
			return
		}
		r.tellWait(next, waiting)
		select {
		case <-time.After(max(next.Sub(r.e.Ledger.Clock()), 20*ledger.Ms)):
		case <-ctx.Done():
		}
	}
}

// watchInbox scans whenever the box says a scan is worthwhile.
func (r *run) watchInbox(ctx context.Context) error {
	wake := make(chan struct{}, 1)
	var full, free <-chan time.Time // look again for room, and for items that are done
	orphans := time.NewTicker(recoverEvery)
	defer orphans.Stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-wake:
			case <-full:
			case <-orphans.C:
				if !r.e.Intake.Orphaned(r.box) {
					continue
				}
			case <-free:
				if free = time.After(roomEvery); !r.anyFree() {
					continue
				}
			}
			full, free = nil, nil
			if _, more := r.takeIn(ctx); more {
				full = time.After(roomEvery)
			}
			if r.anyBound() {
				free = time.After(roomEvery)
			}
		}
	})
	defer wg.Wait()
	return r.box.Run(ctx, func() {
		select {
		case wake <- struct{}{}:
		default: // a scan is due already
		}
	})
}

// soonest is when a waiting drop may settle, if that is within patience.
func soonest(waiting []inbox.Waiting, patience time.Time) (t time.Time, ok bool) {
	for _, w := range waiting {
		if !w.Until.IsZero() && !w.Until.After(patience) && (!ok || w.Until.Before(t)) {
			t, ok = w.Until, true
		}
	}
	return t, ok
}

// tellWait says what a run waits for, when that takes so long that it seems to hang.
func (r *run) tellWait(next time.Time, waiting []inbox.Waiting) {
	const long = 3 * time.Second
	for _, w := range waiting {
		if w.Until.Equal(next) && next.Sub(r.e.Ledger.Clock()) > long {
			r.tell(fmt.Sprintf("waits until %s for %s", layout.FormatTime(next), ask.WaitingRow(w)))
			return
		}
	}
}

func (r *run) growing(waiting []inbox.Waiting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range waiting {
		if w.Taken {
			continue
		}
		if w.Barred {
			r.summary.Barred++
		}
		r.summary.Growing = append(r.summary.Growing, ask.WaitingRow(w).String())
	}
	for _, t := range r.left {
		if why, waits := r.e.Intake.Bound(t); waits {
			r.summary.Growing = append(r.summary.Growing, boundText(t, why))
		}
	}
}

// roomEvery is how often it is looked whether there is room for more items.
const roomEvery = 200 * time.Millisecond

// takeIn takes in what has settled and sets bad drops aside. more tells that some
// were left for want of room.
func (r *run) takeIn(ctx context.Context) (left []inbox.Waiting, more bool) {
	e := r.e
	found, err := r.scan(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.each(err)
		}
		if ledger.StopsAll(err) || ctx.Err() != nil {
			return nil, false
		}
	}
	free, waiting := e.Intake.KeepBack(found.Settled, found.Waiting)
	r.tellLate(waiting)
	for _, b := range found.Bad {
		kept, err := r.box.Reject(ctx, b.Drop, b.Rule, b.Reason)
		if errors.Is(err, inbox.ErrGone) {
			continue
		}
		if err != nil {
			r.broken(fmt.Errorf("set %s/%s aside: %w", b.Collection, layout.EncodePath(b.Name), err))
			continue
		}
		r.admitted(intake.Admitted{Collection: b.Collection, Label: layout.EncodePath(b.Name), Rejected: b.Reason, KeptAs: kept})
	}
	if r.pool.Draining() {
		return waiting, false
	}
	if err := r.takeLeft(ctx); err != nil {
		r.each(err)
	}
	settled, crowded := e.Intake.Fitting(ctx, free)
	waiting = append(waiting, crowded...)
	if len(crowded) > 0 {
		r.tell(string(crowded[0].Collection) + "/" + layout.EncodePath(crowded[0].Name) + ": " + crowded[0].Reason)
	}
	if n, why := e.Intake.Room(); n >= 0 && n < len(settled) {
		settled, more = settled[:n], true
		if why != "" {
			r.tell(why)
		}
	}
	before := r.progress()
	again, err := e.Intake.AdmitAll(ctx, r.box, settled, r.o.Batch, r.admitted)
	r.left = append(r.left, again...)
	r.each(err)
	r.tellBound()
	r.each(r.endBatches(ctx, found.Batches))
	// A batch whose last drops came in just now is whole at the next scan.
	ending := slices.ContainsFunc(found.Batches, func(f inbox.BatchFolder) bool { return f.Marked && f.Left > 0 })
	return waiting, more || ending && r.progress() > before
}

// progress is how many drops this run has dealt with.
func (r *run) progress() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.summary.Admitted + r.summary.Rejected
}

// resettle has the inbox go by the settings in force.
func (r *run) resettle() {
	s := r.e.Settings.Current().Settings
	if s == r.settled {
		return
	}
	if err := r.box.Resettle(s.Inbox.Settling(), s.SettlingByCollection()); err != nil {
		r.broken(err) // the settings were checked
		return
	}
	r.settled = s
}

// tellLate tells, once, of drops that are on their way for too long, and of those that
// wait for a person.
func (r *run) tellLate(waiting []inbox.Waiting) {
	late := map[string]bool{}
	for _, w := range waiting {
		if !w.Late && !w.Barred {
			continue
		}
		late[w.Path+w.Reason] = true
		if !r.late[w.Path+w.Reason] {
			r.report(Report{Grave: w.Barred, Note: fmt.Sprintf("%s/%s: %s", w.Collection, layout.EncodePath(w.Name), w.Reason)})
		}
	}
	r.late = late
}
