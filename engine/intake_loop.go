package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/inbox"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/runner"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

// inboxLoop takes in the inbox, beside the work of a run. One goroutine runs it.
type inboxLoop struct {
	*account
	e     *Engine
	pool  *runner.Pool
	batch layout.Name  // that drops from the inbox join
	by    ledger.Actor // closes batch
	box   *inbox.Box
	idle  chan bool // the loop says whether it has something to wait for

	settled *settings.Settings // that the box goes by
	late    map[string]bool    // drops that were told of as late, or as waiting for a person
	left    []inbox.Taken      // taken and not yet items: their commits failed, or their items are not done
	failed  time.Time          // when going on with them did last
}

// scan looks at the inbox, by the settings that are committed when it ends.
func (l *inboxLoop) scan(ctx context.Context) (inbox.Found, error) {
	for {
		l.resettle()
		found, err := l.box.Scan(ctx)
		l.each(err) // the rest is complete
		if ctx.Err() != nil || len(found.Settled)+len(found.Bad)+len(found.Batches) == 0 {
			return found, ctx.Err()
		}
		if changed, err := l.e.Settings.CatchUp(ctx); err != nil || !changed {
			return found, err
		}
	}
}

// run scans the inbox: once, waiting for what is about to settle, or on and
// on when watching.
func (l *inboxLoop) run(ctx context.Context) {
	if l.watch {
		err := l.watchInbox(ctx)
		if err != nil && ctx.Err() == nil {
			l.broken(fmt.Errorf("watch the inbox: %w", err))
		}
		return
	}
	// A drop made just before this command settles within the quiet time; one
	// that grows all the while is left for the next run.
	patience := l.e.Ledger.Clock().Add(2*l.e.Settings.Current().Settings.Quiet() + time.Second)
	for {
		waiting, more := l.takeIn(ctx)
		next, ok := soonest(waiting, patience)
		if more { // when there is room
			next, ok = l.e.Ledger.Clock().Add(roomEvery), true
		}
		if !ok && l.awaitBound(ctx) {
			continue
		}
		if !ok || ctx.Err() != nil || l.pool.Draining() {
			l.growing(waiting)
			l.closeSession(ctx)
			l.idle <- true
			return
		}
		l.tellWait(next, waiting)
		select {
		case <-time.After(max(next.Sub(l.e.Ledger.Clock()), 20*ledger.Resolution)):
		case <-ctx.Done():
		}
	}
}

// watchInbox scans whenever the box says a scan is worthwhile.
func (l *inboxLoop) watchInbox(ctx context.Context) error {
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
				if !l.e.Intake.Orphaned(l.box) {
					continue
				}
			case <-free:
				if free = time.After(roomEvery); !l.anyFree() {
					continue
				}
			}
			full, free = nil, nil
			if _, more := l.takeIn(ctx); more {
				full = time.After(roomEvery)
			}
			if l.anyBound() {
				free = time.After(roomEvery)
			}
		}
	})
	defer wg.Wait()
	return l.box.Run(ctx, func() {
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
func (l *inboxLoop) tellWait(next time.Time, waiting []inbox.Waiting) {
	const long = 3 * time.Second
	for _, w := range waiting {
		if w.Until.Equal(next) && next.Sub(l.e.Ledger.Clock()) > long {
			l.tellOnce(Report{Note: fmt.Sprintf("waits until %s for %s", layout.FormatTime(next), ask.WaitingRow(w)), Remedies: w.Remedies})
			return
		}
	}
}

func (l *inboxLoop) growing(waiting []inbox.Waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range waiting {
		if w.Taken {
			continue
		}
		if w.Barred || w.Crowded {
			l.summary.Barred++
		}
		if w.Barred || w.Crowded || w.Held || w.Late {
			l.summary.Stuck++
		}
		l.summary.Growing = append(l.summary.Growing, fault.Advice{Text: ask.WaitingRow(w).String(), Remedies: w.Remedies})
	}
	for _, t := range l.left {
		if why, waits := l.e.Intake.Bound(t); waits {
			l.summary.Growing = append(l.summary.Growing, fault.Advice{Text: boundText(t, why)})
			l.summary.Stuck++
		}
	}
}

// roomEvery is how often it is looked whether there is room for more items.
const roomEvery = 200 * time.Millisecond

// takeIn takes in what has settled and sets bad drops aside. more tells that some
// were left for want of room.
func (l *inboxLoop) takeIn(ctx context.Context) (left []inbox.Waiting, more bool) {
	e := l.e
	found, err := l.scan(ctx)
	if err != nil {
		if ctx.Err() == nil {
			l.each(err)
		}
		if ledger.StopsAll(err) || ctx.Err() != nil {
			return nil, false
		}
	}
	free, waiting := e.Intake.KeepBack(found.Settled, found.Waiting)
	if l.metrics != nil {
		l.metrics.Scanned(len(waiting), len(free) > 0)
		defer l.metrics.Taken()
	}
	l.tellLate(waiting)
	for _, b := range found.Bad {
		kept, err := l.box.Reject(ctx, b.Drop, b.Rule, b.Reason)
		if errors.Is(err, inbox.ErrGone) {
			continue
		}
		if err != nil {
			l.broken(fmt.Errorf("set %s/%s aside: %w", b.Collection, layout.EncodePath(b.Name), err))
			continue
		}
		l.admitted(intake.Admitted{Collection: b.Collection, Label: layout.EncodePath(b.Name), Rejected: b.Reason, KeptAs: kept})
	}
	if l.pool.Draining() {
		return waiting, false
	}
	if err := l.takeLeft(ctx); err != nil {
		l.each(err)
	}
	settled, crowded := e.Intake.Fitting(ctx, free)
	waiting = append(waiting, crowded...)
	if len(crowded) > 0 {
		l.tell(string(crowded[0].Collection) + "/" + layout.EncodePath(crowded[0].Name) + ": " + crowded[0].Reason)
	}
	var why string
	if settled, more, why = e.Intake.Admit(settled); why != "" {
		l.tell(why)
	}
	before := l.progress()
	again, err := e.Intake.AdmitAll(ctx, l.box, settled, l.batch, l.admitted)
	l.left = append(l.left, again...)
	l.each(err)
	l.tellBound()
	l.each(l.endBatches(ctx, found.Batches))
	// A batch whose last drops came in just now is whole at the next scan.
	ending := slices.ContainsFunc(found.Batches, func(f inbox.BatchFolder) bool { return f.Marked && f.Left > 0 })
	return waiting, more || ending && l.progress() > before
}

// resettle has the inbox go by the settings in force.
func (l *inboxLoop) resettle() {
	s := l.e.Settings.Current().Settings
	if s == l.settled {
		return
	}
	if err := l.box.Resettle(s.Settling(), s.SettlingByCollection()); err != nil {
		l.broken(err) // the settings were checked
		return
	}
	l.settled = s
}

// tellLate tells, once, of drops that are on their way for too long, and of those that
// wait for a person.
func (l *inboxLoop) tellLate(waiting []inbox.Waiting) {
	late := map[string]bool{}
	for _, w := range waiting {
		if !w.Late && !w.Barred {
			continue
		}
		late[w.Path+w.Reason] = true
		if !l.late[w.Path+w.Reason] {
			l.report(Report{Grave: w.Barred, Summed: true, Remedies: w.Remedies, Note: path.Join(string(w.Collection), layout.EncodePath(w.Name)) + ": " + w.Reason})
		}
	}
	l.late = late
}

// readings calls readers, beside the work of a run.
type readings struct {
	*account
	e     *Engine
	drain <-chan struct{}
}

// once calls the readers that are called by themselves.
func (r readings) once(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-r.drain:
			stop()
		case <-ctx.Done():
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(r.e.Settings.Current().Settings.Readers)) {
		if r.e.Settings.Current().Settings.Readers[name].Every > 0 && ctx.Err() == nil {
			r.call(ctx, name)
		}
	}
}

func (r readings) call(ctx context.Context, name string) {
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

// keep calls them at their times while the run watches.
func (r readings) keep(ctx context.Context) {
	tick := time.NewTicker(settingsLook)
	defer tick.Stop()
	last := map[string]time.Time{}
	for {
		readers := r.e.Settings.Current().Settings.Readers
		for _, name := range slices.Sorted(maps.Keys(readers)) {
			every, now := time.Duration(readers[name].Every), r.e.Ledger.Clock()
			if every > 0 && now.Sub(last[name]) >= every && ctx.Err() == nil {
				r.call(ctx, name)
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
