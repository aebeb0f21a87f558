package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/attempt"
	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/steps"
)

const (
	judgeEvery = 100 * time.Millisecond
	// pausedAfter is the gap between two looks at the leases that tells that this process did
	// not run: then nobody could have beaten.
	pausedAfter = time.Second
	// statusShare bounds the time that is spent on telling how a large fleet stands: one part of so many.
	statusShare = 30
	// shownEvery is how often a worker's file among the engines is touched.
	shownEvery = 10 * time.Second
	// forgottenAfter is how long a worker that is silent and has nothing is still told of.
	forgottenAfter = 10 * time.Minute
)

// beat gives the attempts that a worker names whole leases, and tells it which are not its.
func (r *Remote) beat(name layout.Name, b wire.Beat) wire.Orders {
	now := r.rooms.Now()
	r.mu.Lock()
	w := r.workers[name]
	if w == nil || w.Engine != b.Engine {
		r.mu.Unlock()
		return wire.Orders{Head: wire.Now(), Unknown: true}
	}
	before := w.state
	w.seen = now
	if w.state = b.State; w.state != before {
		r.serve(w)
	}
	orders, forged := r.orders(w), ""
	told := map[*loan]wire.Told{}
	for _, t := range b.Running {
		ref, err := t.Ref()
		l := r.loans[ref]
		if err != nil || l == nil || ref.Key.Engine != w.Engine || l.held.Nonce != t.Nonce {
			if err == nil && (ref.Key.Engine != w.Engine || l != nil) {
				forged = fmt.Sprintf("it names attempt %s of item %s, which is not its", ref.Key, ref.Item.Short())
			}
			if _, done := r.ended[ref]; !done {
				orders.Lost = append(orders.Lost, t.Held)
			}
			continue
		}
		l.expires = now.Add(l.lease)
		if t.Note != "" || t.Percent >= 0 {
			told[l] = t
		}
	}
	r.mu.Unlock()
	for l, t := range told {
		tellProgress(l, t)
	}
	if forged != "" {
		gate{r}.suspend(name, forged)
	}
	if before != b.State {
		r.rooms.Nudge()
	}
	return orders
}

// tellProgress writes what a worker told where a robot of this machine writes it.
func tellProgress(l *loan, t wire.Told) {
	said, ok := steps.ReadProgress(l.work.Scratch())
	if ok && said.Note == t.Note && said.Percent == t.Percent {
		return
	}
	_ = steps.TellProgress(l.work.Scratch(), steps.Progress{Note: t.Note, Percent: min(max(t.Percent, -1), 100)}) // told or not, the step goes on
}

// judging ends the loans whose leases ran out. Time is that of this process's monotonic clock.
func (r *Remote) judging(ctx context.Context) {
	tick := time.NewTicker(judgeEvery)
	defer tick.Stop()
	last, shown, saved, saving := r.rooms.Now(), time.Time{}, time.Time{}, time.Duration(0)
	var ending sync.WaitGroup // an end may wait for the disk, and is not waited for
	defer ending.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := r.rooms.Now()
		if now.Sub(last) > pausedAfter || !r.place.Broker.Connected() || r.overdue(now) && !r.hears(ctx) {
			now = r.rooms.Now()
			r.renew(now)
		}
		last = now
		for _, l := range (Claimants{r}).late(now) {
			ending.Go(func() { Claimants{r}.timeOut(l) })
		}
		for _, l := range r.expired(now) {
			ending.Go(func() { r.lose(ctx, l) })
		}
		if now.Sub(shown) >= shownEvery {
			shown = now
			r.show(now)
		}
		if now.Sub(saved) >= max(time.Second, statusShare*saving) {
			saved = now
			r.saveStatus()
			saving = r.rooms.Now().Sub(now)
			if r.awaits() {
				r.rooms.Nudge()
			}
		}
	}
}

// hears reports whether the broker answers: a link that carries nothing looks like workers that say nothing.
func (r *Remote) hears(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pausedAfter)
	defer cancel()
	return r.place.Broker.Answers(ctx)
}

var errLost = errors.New("lost")

// lose commits an attempt as lost, and offers its step again. After so many in a row the step
// fails: a robot that kills its host is not sent to the next.
func (r *Remote) lose(ctx context.Context, l *loan) {
	why := fmt.Sprintf("%s was not heard of for %s", l.who(), l.lease)
	ctx = context.WithoutCancel(ctx)
	l.prepare.Lock()
	defer l.prepare.Unlock()
	var err error
	if n, most := l.work.LostBefore()+1, r.rooms.Settings.Current().Settings.Workers.MostLost(); n >= most {
		err = l.work.End(ctx, steps.Result{}, steps.SystemFailure("%d attempts in a row were lost with their workers; the last: %s", n, why), "")
	} else {
		err = l.work.GiveUp(ctx, why+"; the step is offered again")
	}
	r.mu.Lock()
	if w := r.workers[l.worker]; w != nil {
		w.lapses++
	}
	r.note(l, errLost)
	r.mu.Unlock()
	r.over(l, err)
	r.tell(l.worker, wire.Orders{Head: wire.Now(), Lost: []wire.Held{l.held}})
}

// show shows the workers that hold leases among the engines, and forgets those that are long
// silent and hold none.
func (r *Remote) show(now time.Time) {
	type guest struct {
		id   layout.EngineID
		text string
		pid  int
	}
	var shown []guest
	var hidden []layout.EngineID
	r.mu.Lock()
	holds := map[layout.EngineID]bool{}
	for ref, l := range r.loans {
		if w := r.workers[l.worker]; w == nil || w.Engine != ref.Key.Engine {
			if !holds[ref.Key.Engine] {
				shown = append(shown, guest{ref.Key.Engine, l.guest(), 0})
			}
		}
		holds[ref.Key.Engine] = true
	}
	for name, w := range r.workers {
		switch {
		case holds[w.Engine] || w.state != StateSilent:
			shown = append(shown, guest{w.Engine, w.guest(), w.PID})
			w.shown = now
		case now.Sub(w.seen) > forgottenAfter:
			delete(r.workers, name)
			r.regroup()
			fallthrough
		default:
			hidden = append(hidden, w.Engine)
			w.shown = time.Time{}
		}
	}
	r.mu.Unlock()
	for _, g := range shown {
		r.showOne(g.id, g.text, g.pid)
	}
	for _, id := range hidden {
		if err := r.rooms.Guests.HideGuest(id); err != nil {
			r.rooms.Log.Warn("hide a worker", "err", err)
		}
	}
}

// shown shows a worker that is to be granted something, unless it was a little while ago.
func (r *Remote) shown(w *worker) {
	now := r.rooms.Now()
	r.mu.Lock()
	known := now.Sub(w.shown) < shownEvery
	r.mu.Unlock()
	if known {
		return
	}
	ok := r.showOne(w.Engine, w.guest(), w.PID)
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.shown = now; !ok {
		w.shown = time.Time{}
	}
}

func (r *Remote) showOne(id layout.EngineID, text string, pid int) (ok bool) {
	err := r.rooms.Guests.ShowGuest(id, text, pid)
	if err != nil {
		r.rooms.Log.Warn("show a worker among the engines", "worker", text, "err", err)
	}
	return err == nil
}

// overHTTP ends how a program is shown that came over HTTP.
const overHTTP = " over HTTP"

// guest is how whoever has a loan is shown among the engines.
func (l *loan) guest() string {
	if l.http != nil {
		return string(l.worker) + overHTTP
	}
	return string(l.worker)
}

// adopted is the loan of an attempt that an engine before lent to a guest.
func (r Claimants) adopted(ref layout.AttemptRef, w *attempt.Away, guest string) *loan {
	p, _ := r.rooms.Settings.Current().Settings.Workers.Placed(w.Entry.ID().Workflow, string(ref.Step))
	name, _, _ := strings.Cut(guest, " ")
	l := &loan{ref: ref, held: wire.HeldOf(ref, r.nonce(ref)), worker: layout.Name(name), work: w, lease: max(time.Duration(p.Lease), r.lease()), alone: p.Alone, send: p.Send, prepared: true}
	if strings.HasSuffix(guest, overHTTP) {
		l.lease, l.http = leaseOf(p), bounded(w, r.rooms.Now())
	}
	l.expires = r.rooms.Now().Add(l.lease)
	return l
}

// Adopt takes up the attempts of workers that an engine before lent, with whole leases.
// guests are the workers that are shown among the engines, as they are shown. hurried and done are those of
// the engine's other work.
func (r *Remote) Adopt(guests map[layout.EngineID]string, hurried func() bool, done func(*attempt.Work)) (n int, err error) {
	for _, ref := range r.rooms.Attempts.Running(func(id layout.EngineID) bool { _, is := guests[id]; return is }) {
		w, ok, err := r.rooms.Attempts.Adopt(ref, func(why error) { r.cancel(ref, why) }, hurried, done)
		if err != nil {
			return n, err
		}
		if !ok {
			continue
		}
		l := Claimants{r}.adopted(ref, w, guests[ref.Key.Engine])
		r.mu.Lock()
		r.enter(l)
		r.mu.Unlock()
		n++
	}
	r.mu.Lock()
	r.resuming = false
	r.mu.Unlock()
	return n, nil
}
