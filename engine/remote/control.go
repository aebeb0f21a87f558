package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
)

// control does what the workspace's operator orders.
func (r *Remote) control(from layout.Name, c wire.Control) wire.Controlled {
	if from != wire.Operator {
		return wire.Controlled{Head: wire.Now(), Refused: fmt.Sprintf("worker %s gives no orders", from)}
	}
	text, err := operator{r}.do(c)
	if err != nil {
		return wire.Controlled{Head: wire.Now(), Refused: err.Error()}
	}
	return wire.Controlled{Head: wire.Now(), Text: text}
}

// operator does what the workspace's operator orders.
type operator struct{ *Remote }

func (r operator) do(c wire.Control) (string, error) {
	switch c.Verb {
	case wire.Rebuild:
		r.mu.Lock()
		r.epoch += "-" // no stream has it
		r.mu.Unlock()
		signal(r.doubts)
		return "the stream of offers is made anew", nil
	case wire.Verify:
		return r.verifyStream()
	case wire.Test:
		return r.rehearse(c)
	case wire.Meta:
		return r.meet(c.Worker)
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
		w.stopped, w.suspect, w.lapses = false, "", 0
	case wire.Forget:
		if w.state != StateSilent && w.state != StateGone || running > 0 {
			r.mu.Unlock()
			return "", fmt.Errorf("worker %s is %s and has %s; one that is silent or gone, and has none, can be forgotten", c.Worker, w.state, layout.Count(running, "attempt"))
		}
		delete(r.workers, c.Worker)
		r.regroup()
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

// metaTime is how long the workers' answers are waited for.
const metaTime = 60 * time.Second

// meet has the workers that begin steps say anew who they are and what they offer, or the one that is named.
func (r operator) meet(name layout.Name) (string, error) {
	asked := r.rooms.Now()
	r.mu.Lock()
	var all []layout.Name
	for n, w := range r.workers {
		if w.state != StateSilent && (name == "" || n == name) {
			all = append(all, n)
		}
	}
	r.mu.Unlock()
	if name != "" && len(all) == 0 {
		return "", fmt.Errorf("no worker %s is connected", name)
	}
	for _, n := range all {
		r.tell(n, wire.Orders{Head: wire.Now(), Meet: true})
	}
	for {
		var left []string
		r.mu.Lock()
		for _, n := range all {
			if w := r.workers[n]; w != nil && !w.met.After(asked) {
				left = append(left, string(n))
			}
		}
		r.mu.Unlock()
		if len(left) == 0 {
			r.saveStatus()
			return layout.Count(len(all), "worker") + " told what they are", nil
		}
		if r.rooms.Now().Sub(asked) > metaTime {
			return "", fmt.Errorf("no answer came within %s from %s", metaTime, strings.Join(left, ", "))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// verifyStream compares the stream with what is on offer.
func (r operator) verifyStream() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	epoch, there, err := r.place.Broker.Look(ctx)
	if err != nil {
		return "", err
	}
	behind, err := r.place.Broker.Behind(ctx)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if epoch != r.epoch {
		return "", fmt.Errorf("the stream is of epoch %s; the engine's is %s", epoch, r.epoch)
	}
	text := fmt.Sprintf("epoch %s: %d on offer, %d in the stream, %d claimed", epoch, len(r.offers), there, len(r.loans))
	if len(behind) > 0 {
		text += "; behind: " + strings.Join(behind, ", ")
	}
	return text, nil
}

// rehearsals number the attempts of rehearsals: those of steps are fewer.
const rehearsals = 1_000_000

// rehearse has a worker run a step again on kept inputs, and tells how that went, as JSON.
func (r operator) rehearse(c wire.Control) (string, error) {
	r.mu.Lock()
	w := r.workers[c.Worker]
	if w == nil || w.state == StateSilent {
		r.mu.Unlock()
		return "", fmt.Errorf("no worker %s is connected", c.Worker)
	}
	r.serial++
	key := layout.AttemptKey{N: rehearsals + r.serial, Engine: w.Engine}
	r.mu.Unlock()
	workflow, step := "", c.Step
	if i := strings.LastIndexByte(step, '/'); i >= 0 {
		workflow, step = step[:i], step[i+1:]
	}
	trial, err := r.rooms.Attempts.Rehearse(ledger.StepRef{Item: c.Item, Workflow: workflow, Step: layout.Name(step)}, c.Attempt, key)
	if err != nil {
		return "", err
	}
	_, s, err := trial.Prepare(context.Background())
	if err != nil {
		return "", err
	}
	lease := r.lease()
	l := &loan{ref: trial.AttemptRef, held: wire.HeldOf(trial.AttemptRef, r.nonce(trial.AttemptRef)), worker: w.Name, work: trial, lease: lease,
		expires: r.rooms.Now().Add(lease), robot: robotName(s)}
	grant := r.laden(l)
	r.mu.Lock()
	r.enter(l)
	r.mu.Unlock()
	r.tell(w.Name, wire.Orders{Head: wire.Now(), Try: &grant})
	select {
	case told := <-trial.Done:
		data, err := json.MarshalIndent(told, "", "  ")
		return string(data), err
	case <-time.After(rehearsalTime):
		if l := r.close(l.ref); l != nil {
			r.over(l, nil)
		}
		return "", fmt.Errorf("worker %s did not end it within %s", w.Name, rehearsalTime)
	}
}

// rehearsalTime is how long a rehearsal is waited for.
const rehearsalTime = time.Hour
