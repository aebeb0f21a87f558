package remote

import (
	"context"
	"fmt"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
)

// control does what the workspace's operator orders.
func (r *Remote) control(from layout.Name, c wire.Control) wire.Controlled {
	if from != wire.Operator {
		return wire.Controlled{Head: wire.Now(), Refused: fmt.Sprintf("worker %s gives no orders", from)}
	}
	text, err := r.do(c)
	if err != nil {
		return wire.Controlled{Head: wire.Now(), Refused: err.Error()}
	}
	return wire.Controlled{Head: wire.Now(), Text: text}
}

func (r *Remote) do(c wire.Control) (string, error) {
	switch c.Verb {
	case wire.Rebuild:
		r.mu.Lock()
		r.epoch += "-" // no stream has it
		r.mu.Unlock()
		signal(r.doubts)
		return "the stream of offers is made anew", nil
	case wire.Verify:
		return r.verifyStream()
	}
	r.mu.Lock()
	w := r.workers[c.Worker]
	if w == nil {
		r.mu.Unlock()
		return "", fmt.Errorf("no worker %s is connected", c.Worker)
	}
	running := r.running(w)
	switch c.Verb {
	case wire.Drain:
		w.drained = true
	case wire.Stop:
		w.stopped = true
	case wire.Resume:
		w.stopped = false
	case wire.Forget:
		if w.state != StateSilent || running > 0 {
			r.mu.Unlock()
			return "", fmt.Errorf("worker %s is %s and has %d attempts; one that is silent and has none can be forgotten", c.Worker, w.state, running)
		}
		delete(r.workers, c.Worker)
		r.mu.Unlock()
		return fmt.Sprintf("worker %s is forgotten", c.Worker), nil
	default:
		r.mu.Unlock()
		return "", fmt.Errorf("no order %q", c.Verb)
	}
	r.serve(w)
	orders := r.orders(w)
	r.mu.Unlock()
	r.tell(c.Worker, orders)
	r.rooms.Nudge()
	return fmt.Sprintf("worker %s: %d running", c.Worker, running), nil
}

// verifyStream compares the stream with what is on offer.
func (r *Remote) verifyStream() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	epoch, there, err := r.place.Broker.Look(ctx)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if epoch != r.epoch {
		return "", fmt.Errorf("the stream is of epoch %s; the engine's is %s", epoch, r.epoch)
	}
	return fmt.Sprintf("epoch %s: %d on offer, %d in the stream, %d claimed", epoch, len(r.offers), there, len(r.loans)), nil
}
