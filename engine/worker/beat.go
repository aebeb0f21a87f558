package worker

import (
	"context"
	"errors"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/steps"
)

// beating tells the engine every third of a lease what runs here, and ends the robots that act
// outside where the engine is not heard for two thirds of one.
func (w *Worker) beating(ctx context.Context) {
	for last := w.o.Now(); ; {
		wait := w.third()
		select {
		case <-ctx.Done():
			return
		case <-w.sooner:
			continue
		case <-time.After(wait - w.o.Now().Sub(last)):
		}
		last = w.o.Now()
		asked, cancel := context.WithTimeout(ctx, wait)
		err := w.beat(asked)
		cancel()
		var refused *ErrRefused
		if errors.As(err, &refused) && errors.As(w.hello(ctx), &refused) { // hello says why
			w.gone <- refused
			return
		}
		if err != nil && ctx.Err() == nil {
			w.o.Log.Info("the engine did not answer a beat", "err", err)
			w.endAlone()
		}
	}
}

// third is a third of the shortest lease that is held.
func (w *Worker) third() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	lease := w.lease
	for _, a := range w.running {
		lease = min(lease, a.lease)
	}
	return max(lease/3, 50*time.Millisecond)
}

func (w *Worker) beat(ctx context.Context) error {
	for _, b := range w.pulse().Parts() {
		data, err := wire.Encode(b)
		if err != nil {
			return err
		}
		var orders wire.Orders
		if err := w.exchange(ctx, wire.VerbBeat, data, &orders); err != nil {
			return err
		}
		w.mu.Lock()
		w.heard = w.o.Now()
		w.mu.Unlock()
		if orders.Unknown {
			if err := w.hello(ctx); err != nil {
				return err
			}
			orders = w.greeted().Orders
		}
		w.obey(ctx, orders)
	}
	return nil
}

// pulse says what runs here.
func (w *Worker) pulse() wire.Beat {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := wire.Beat{Head: wire.Now(), Engine: w.o.Engine, State: "ready"}
	if w.draining {
		b.State = "draining"
	}
	for _, a := range w.running {
		told := wire.Told{Held: a.held, Percent: -1}
		if a.scratch != "" {
			if p, ok := steps.ReadProgress(a.scratch); ok {
				told.Note, told.Percent = p.Note, p.Percent
			}
		}
		b.Running = append(b.Running, told)
	}
	return b
}

// lastBeat tells that nothing runs here any more.
func (w *Worker) lastBeat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	b := w.pulse()
	b.State = "gone"
	if data, err := wire.Encode(b); err == nil {
		_, _ = w.o.Link.Ask(ctx, wire.VerbBeat, data) // the engine finds out by itself
	}
}

func (w *Worker) heardOrders(ctx context.Context, data []byte) {
	var o wire.Orders
	if err := wire.Decode(data, &o); err != nil {
		w.o.Log.Warn("orders were refused", "err", err)
		return
	}
	w.obey(ctx, o)
}

// obey does what the engine orders. Orders without an epoch tell of attempts alone.
func (w *Worker) obey(ctx context.Context, o wire.Orders) {
	if o.Beat {
		w.wg.Go(func() { _ = w.beat(ctx) }) // the next one tells
	}
	if o.Try != nil {
		grant := *o.Try
		w.wg.Go(func() {
			if w.room.take(ctx) {
				w.perform(context.WithoutCancel(ctx), grant)
			}
		})
	}
	if o.Meet {
		w.wg.Go(func() { _ = w.hello(ctx) })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range o.Lost {
		w.endOne(h, errLost)
	}
	for _, h := range o.Cancel {
		w.endOne(h, errCancelled)
	}
	if o.Epoch == "" {
		return
	}
	if o.Lease > 0 {
		w.hasten(o.Lease)
		w.lease = o.Lease
	}
	w.stopped = o.Stop
	if o.Drain {
		w.draining = true
	}
	want := map[string]bool{}
	if !w.draining && !w.stopped {
		for _, class := range o.Classes {
			want[class] = true
		}
	}
	for class, stop := range w.classes {
		if !want[class] {
			stop()
			delete(w.classes, class)
		}
	}
	for class := range want {
		if w.classes[class] == nil {
			pulls, stop := context.WithCancel(ctx)
			w.classes[class] = stop
			for range min(pullsAtOnce, w.room.most) {
				w.wg.Go(func() { w.pulling(pulls, class) })
			}
		}
	}
}

var (
	errLost      = errors.New("the engine gave the attempt up: the lease ran out")
	errCancelled = errors.New("a person cancelled the attempt")
	errUnheard   = errors.New("the engine was not heard, and the robot acts outside")
)

// endOne ends the robot of an attempt that is not this worker's any more; w.mu is held.
func (w *Worker) endOne(h wire.Held, why error) {
	ref, err := h.Ref()
	if err != nil {
		return
	}
	if a := w.running[ref]; a != nil {
		a.end(why)
	}
}

// endAlone ends the robots that must not go on while the engine is not heard.
func (w *Worker) endAlone() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.running {
		if a.alone && w.o.Now().Sub(w.heard) > a.lease*2/3 {
			a.end(&givenBack{errUnheard})
		}
	}
}

// pulling claims the offers of a class, one after the other, as long as there is room.
func (w *Worker) pulling(ctx context.Context, class string) {
	for w.room.pull(ctx, class) {
		p, ok, err := w.o.Link.Pull(ctx, class, pullWait)
		if took := w.room.pulled(class, ok); ok && !took {
			p.Return()
			continue
		}
		if err != nil {
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		if ok {
			w.take(ctx, p)
		}
	}
}

// pullsAtOnce is how many pulls of a class wait side by side, so that short steps do not wait
// for each other's offers.
const pullsAtOnce = 4

// pullWait is how long a pull waits for an offer.
const pullWait = 5 * time.Second

// take claims an offer, for which there is room.
func (w *Worker) take(ctx context.Context, p Pulled) {
	var offer wire.Offer
	if err := wire.Decode(p.Data(), &offer); err != nil {
		w.o.Log.Warn("an offer was refused", "err", err)
		w.room.leave()
		p.Done()
		return
	}
	w.wg.Go(func() { // others are claimed while this claim is being committed
		grant, ok := w.claim(ctx, offer, p)
		if !ok {
			w.room.leave()
			return
		}
		w.perform(context.WithoutCancel(ctx), grant)
	})
}

// claim asks for the step of an offer, until the engine says yes or no.
func (w *Worker) claim(ctx context.Context, offer wire.Offer, p Pulled) (grant wire.Grant, ok bool) {
	data, err := wire.Encode(wire.Claim{Head: wire.Now(), Engine: w.o.Engine, Offer: offer.ID, Epoch: offer.Epoch})
	if err != nil {
		p.Return()
		return grant, false
	}
	for begin := time.Now(); ; {
		grant = wire.Grant{}
		err := w.exchange(context.WithoutCancel(ctx), wire.VerbClaim, data, &grant) // a claim that was sent may be granted
		most := askTime
		if ctx.Err() != nil {
			most = askTimeAtEnd
		}
		switch {
		case err == nil && grant.Gone:
			p.Done()
			return grant, false
		case err == nil && grant.Return != "", time.Since(begin) > most && (err != nil || grant.Again):
			p.Later()
			return grant, false
		case err == nil && !grant.Again:
			if !grant.Cleared {
				p.Done()
			}
			return grant, true
		}
		p.Working()
		time.Sleep(claimPause)
	}
}

const (
	claimPause   = 100 * time.Millisecond
	askTime      = time.Minute
	askTimeAtEnd = 5 * time.Second // of a worker that is to end: what the engine did not hear is lost after its lease
)

// enter notes an attempt that begins.
func (w *Worker) enter(ref layout.AttemptRef, a *attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[ref] = a
	w.heard = w.o.Now()
	w.hasten(a.lease)
}

// hasten has the next beat come in time for a lease that is shorter than those before; the lock is held.
func (s *state) hasten(lease time.Duration) {
	if lease >= s.lease {
		return
	}
	select {
	case s.sooner <- struct{}{}:
	default: // it is told already
	}
}

func (w *Worker) leave(ref layout.AttemptRef) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, ref)
}
