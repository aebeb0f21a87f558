package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"bagpipe/engine/attempt"
	"bagpipe/engine/queue"
	"bagpipe/engine/remote/bus"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/steps"
)

// offer is a step that was taken from the queue and waits for a worker.
type offer struct {
	id       string
	serial   int // in the order in which steps were taken from the queue
	demand   demand
	work     *attempt.Away
	quick    bool // what its robot is given is soon prepared
	since    time.Time
	sent     time.Time // when it was put into the stream; zero: it is not in it
	place    uint64    // its sequence there; 0: not known
	claiming bool      // a worker's claim of it is being committed
}

// Where says who may do a step now.
type Where int

// The answers of May.
const (
	Here   Where = iota // this machine, as if there were no workers
	Away                // a worker: the step is to be taken and offered
	NotNow              // neither: no worker could do it, or enough is on offer
)

const (
	// leastOffered and mostOffered bound what is on offer: twice the free slots.
	leastOffered, mostOffered = 16, 4096
	// patience is how long an offer may lie in the stream while workers pull its class.
	patience = 5 * time.Second
)

// mostAtOnce is how much may be on offer while so many slots are free.
func mostAtOnce(free int) int { return min(max(2*free, leastOffered), mostOffered) }

// enough reports whether no more may be on offer; t.mu is held. An offer that is being claimed is not on offer any more, and
// fills a free slot: while its claim waits for the disk, workers pull the offers after it.
func (t *table) enough() bool { return len(t.offers)-t.claims >= mostAtOnce(t.allFree()-t.claims) }

// May says who may do one more of a step. It never waits: the queue is locked meanwhile.
func (r *Remote) May(id queue.StepID, s *state.Step) Where {
	if s.External {
		return r.wanted(id)
	}
	now := r.rooms.Settings.Current()
	p, ok := now.Settings.Workers.Placed(id.Workflow, string(id.Step))
	if !ok || settings.StaysHere(s, r.rooms.Robots, now.Asks()) != "" {
		return Here
	}
	d := demandOf(s, p, r.rooms.Version)
	r.mu.Lock()
	defer r.mu.Unlock()
	free, able := r.free(d)
	otherwise := Here
	if p.Only || r.place.Away {
		otherwise = NotNow
	}
	if r.given(d, able) {
		return Away
	}
	switch {
	case r.closing || able == 0 || r.trouble != "":
		return otherwise
	case otherwise == Here && r.offered[d.class] >= free:
		return Here
	case r.enough():
		return otherwise
	}
	return Away
}

// given reports whether no worker could do a step for so long that it is not available; r.mu is held.
func (r *table) given(d demand, able int) bool {
	if able > 0 {
		delete(r.barren, d.class)
		return false
	}
	now := r.now()
	since, known := r.barren[d.class]
	if !known {
		r.barren[d.class], since = now, now
	}
	wait := time.Duration(d.Wait)
	return wait > 0 && d.Only && !r.closing && now.Sub(since) >= wait
}

// mostAimed bounds the classes of single workers.
const mostAimed = 1000

// aim notes a class that no placement asks for, and reports whether it is new; r.mu is held.
func (r *table) aim(d demand) bool {
	if _, known := r.demands[d.class]; known {
		return false
	}
	if _, known := r.aimed[d.class]; known {
		return false
	}
	if len(r.aimed) >= mostAimed {
		clear(r.aimed)
	}
	r.aimed[d.class] = d
	return true
}

// unavailable ends a step that no worker could do.
func (r *Remote) unavailable(w *attempt.Away, d demand) {
	ctx := context.Background()
	ref, ok := w.Lend(ctx, r.rooms.Attempts.Own(), func(error) {})
	if !ok {
		return
	}
	err := w.End(ctx, noResult, &steps.Unavailable{Err: fmt.Errorf("no worker that could do %s came within %s", d.Want, time.Duration(d.Wait))}, "")
	if err != nil {
		r.rooms.Log.Error("end a step that no worker could do", "item", ref.Item, "step", ref.Step, "err", err)
	}
	r.rooms.Nudge()
}

// Offer puts a step on offer that May said is to be done away.
func (r *Remote) Offer(w *attempt.Away, id queue.StepID, s *state.Step) {
	p, _ := r.rooms.Settings.Current().Settings.Workers.Placed(id.Workflow, string(id.Step))
	d := demandOf(s, p, r.rooms.Version)
	r.mu.Lock()
	_, able := r.free(d)
	gone := r.given(d, able)
	r.mu.Unlock()
	if gone {
		r.unavailable(w, d)
		return
	}
	on, quick := w.Look()
	if on != "" {
		d.Want.Name = on
		d.class = d.Want.Class()
	}
	r.mu.Lock()
	fresh := r.aim(d)
	r.serial++
	o := &offer{id: r.epoch + "." + strconv.Itoa(r.serial), serial: r.serial, demand: d, work: w, quick: quick, since: r.rooms.Now()}
	closing := r.closing
	if !closing {
		r.offers[o.id] = o
		r.offered[d.class]++
	}
	r.mu.Unlock()
	if closing {
		w.Withdraw()
		return
	}
	if fresh {
		r.tellAll()
	}
	signal(r.fresh)
}

// feed is how the stream takes offers; the table's lock guards it.
type feed struct {
	failed int       // times in a row that it did not take them
	begun  time.Time // when it was made last
	stop   func()    // ends what is being put into it; nil: nothing was yet
	making bool      // it is being made, and loses what is put into it
}

// mostFailed is how many times in a row a stream that is there may fail to take offers.
const mostFailed = 2

// stream keeps the broker's stream of offers as the table has them.
type stream struct{ *Remote }

// publishing puts what is on offer into the stream, as much together as there is. What could not be put into it is
// put again; an offer that is in it twice is granted once.
func (r stream) publishing(ctx context.Context) {
	failing := false
	for {
		select {
		case <-r.fresh:
		case <-ctx.Done():
			return
		}
		if r.ample() { // so more come together meanwhile
			select {
			case <-time.After(gathering):
			case <-ctx.Done():
				return
			}
		}
		err := r.publish(ctx)
		if err == nil || ctx.Err() != nil {
			failing = false
			continue
		}
		if !failing {
			r.rooms.Log.Warn("put offers into the stream", "err", err)
		}
		failing = true
		signal(r.doubts)
		select {
		case <-time.After(publishPause):
			signal(r.fresh)
		case <-ctx.Done():
		}
	}
}

// publishPause is how long offers wait that could not be put into the stream.
const publishPause = 200 * time.Millisecond

// gathering is how long offers wait for others while workers have ampleOffers of the class before them: what is put into the
// stream together costs the server a store of its own, and one sync.
const gathering, ampleOffers = 10 * time.Millisecond, 6

// ample reports whether of each class that has new offers so many are in the stream that workers will not wait for them.
func (r stream) ample() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh, there := map[string]bool{}, map[string]int{}
	for _, o := range r.offers {
		if o.sent.IsZero() {
			fresh[o.demand.class] = true
		} else if !o.claiming {
			there[o.demand.class]++
		}
	}
	for class := range fresh {
		if there[class] < ampleOffers {
			return false
		}
	}
	return true
}

func (r stream) publish(ctx context.Context) (err error) {
	r.mu.Lock()
	if r.feed.making {
		r.mu.Unlock()
		return nil // begin asks for it
	}
	var messages []bus.Message
	var sent []*offer
	classes, epoch := map[string]bool{}, r.epoch
	for _, o := range r.offers {
		if o.sent.IsZero() {
			sent = append(sent, o)
		}
	}
	slices.SortFunc(sent, func(a, b *offer) int { return a.serial - b.serial })
	for _, o := range sent {
		data, err := wire.Encode(wire.Offer{Head: wire.Now(), ID: o.id, Epoch: epoch})
		if err != nil {
			r.mu.Unlock()
			return err
		}
		o.sent, classes[o.demand.class] = r.rooms.Now(), true
		messages = append(messages, bus.Message{Class: o.demand.class, Data: data})
	}
	r.mu.Unlock()
	var places []uint64
	defer func() { r.put(epoch, sent, places, err) }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r.mu.Lock()
	r.feed.stop = cancel
	r.mu.Unlock()
	for class := range classes {
		if err := r.place.Broker.Class(ctx, class); err != nil {
			return err
		}
	}
	places, err = r.place.Broker.Publish(ctx, messages)
	return err
}

// put notes where the stream of an epoch has offers. Where it did not take them, they are not in it, as far as is known.
func (r stream) put(epoch string, offers []*offer, places []uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.feed.failed = 0
		if epoch != r.epoch {
			return
		}
		for i, place := range places {
			o := offers[i]
			if o.place = place; r.offers[o.id] != o { // claimed meanwhile
				r.spend(o.demand.class, place)
			}
		}
		return
	}
	r.feed.failed++
	for _, o := range offers {
		o.sent = time.Time{}
	}
}

// begin makes the stream anew, and the classes' queues.
func (r stream) begin(ctx context.Context) error {
	r.findDemands()
	r.mu.Lock()
	r.serial++
	r.epoch = fmt.Sprintf("%x-%d", r.rooms.Now().UnixNano(), r.serial)
	if r.feed.stop != nil {
		r.feed.stop() // the stream that it goes to would not answer any more
	}
	r.feed = feed{begun: r.rooms.Now(), making: true}
	epoch, classes := r.epoch, make([]string, 0, len(r.demands))
	for class := range r.demands {
		classes = append(classes, class)
	}
	back := r.takeBack(func(*offer) bool { return true })
	for _, o := range r.offers { // their claims are being committed
		o.place = 0
	}
	r.clearing = noneSpent()
	r.mu.Unlock()
	withdraw(back)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := r.place.Broker.Begin(ctx, epoch)
	r.mu.Lock()
	r.feed.making = false
	r.mu.Unlock()
	signal(r.fresh)
	if err != nil {
		return err
	}
	for _, class := range classes {
		if err := r.place.Broker.Class(ctx, class); err != nil {
			return err
		}
	}
	r.troubled(nil)
	r.tellAll()
	r.rooms.Nudge()
	return nil
}

// troubled notes why nothing can be offered, or that it can be again.
func (r stream) troubled(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.mu.Lock()
	before := r.trouble
	r.trouble = text
	r.mu.Unlock()
	if text != "" && before == "" {
		r.rooms.Report("nothing is offered to workers until the NATS server answers: " + text)
	}
	if (text == "") != (before == "") {
		r.rooms.Nudge()
	}
}

// watching makes the stream anew where it is gone, or is not the one that was made, or lies
// still; and follows the settings.
func (r stream) watching(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if r.findDemands() {
				r.tellAll()
			}
			r.clear(ctx)
			r.recall()
		case <-r.doubts:
		}
		why := r.doubt(ctx)
		switch {
		case ctx.Err() != nil:
			continue
		case why == nil:
			if !r.quiet() {
				r.troubled(nil)
				r.tellAll()
			}
			continue
		case errors.Is(why, bus.ErrNoLeader): // they choose one when they can
			r.troubled(why)
			continue
		case r.quiet():
			r.rooms.Report("the stream of offers is made anew: " + why.Error())
		}
		if err := r.begin(ctx); err != nil && ctx.Err() == nil {
			r.rooms.Log.Warn("make the stream anew", "err", err)
			r.restart(ctx)
		}
	}
}

// quiet reports whether nothing is amiss that was told already.
func (r stream) quiet() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trouble == ""
}

// restart begins with a new store where the old one is beyond use.
func (r stream) restart(ctx context.Context) {
	if err := r.place.Restart(); err != nil {
		r.rooms.Log.Error("start the NATS server anew", "err", err)
		r.troubled(err)
		return
	}
	if err := r.begin(ctx); err != nil && ctx.Err() == nil {
		r.rooms.Log.Warn("make the stream anew", "err", err)
		r.troubled(err)
	}
}

// clearTime bounds the wait for the server to take offers out.
const clearTime = time.Second

// clear takes offers out of the stream that do not stand any more.
func (r stream) clear(ctx context.Context) {
	first := map[string]uint64{}
	r.mu.Lock()
	for _, o := range r.offers {
		if before, some := first[o.demand.class]; o.place > 0 && (!some || o.place < before) {
			first[o.demand.class] = o.place
		}
	}
	epoch, upTo := r.epoch, r.clearable(first)
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, clearTime)
	defer cancel()
	for class, last := range upTo {
		if err := r.place.Broker.Clear(ctx, class, last+1); err != nil {
			r.rooms.Log.Debug("take offers out of the stream", "class", class, "err", err)
			return // they are taken out with those of the next second
		}
		r.mu.Lock()
		if r.epoch == epoch {
			r.cleared[class] = last
		}
		r.mu.Unlock()
	}
}

// doubt says why the stream is not to be relied on; nil where it is.
func (r stream) doubt(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	epoch, there, err := r.place.Broker.Look(ctx)
	r.mu.Lock()
	want, sent, still := r.epoch, uint64(0), map[string]bool{}
	full := r.feed.failed >= mostFailed && r.rooms.Now().Sub(r.feed.begun) >= patience
	for _, o := range r.offers {
		if o.sent.IsZero() || r.rooms.Now().Sub(o.sent) < patience {
			continue
		}
		sent++
		if free, _ := r.free(o.demand); free > 0 {
			still[o.demand.class] = true
		}
	}
	r.mu.Unlock()
	switch {
	case err != nil:
		return err
	case epoch != want:
		return errors.New("it is another's")
	case full:
		return fmt.Errorf("it took no offers, %d times", mostFailed)
	case there < sent:
		return fmt.Errorf("it holds %d offers, and %d were put into it", there, sent)
	}
	for class := range still {
		if q, err := r.place.Broker.Queue(ctx, class); err != nil || q.Pulling > 0 && q.Pending > 0 {
			return fmt.Errorf("class %s delivers nothing (%d wait, %d pull)", class, q.Pending, q.Pulling)
		}
	}
	return nil
}
