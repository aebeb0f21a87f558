package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"bagpipe/engine/attempt"
	"bagpipe/engine/fault"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// loan is an attempt that a worker has.
type loan struct {
	ref      layout.AttemptRef
	held     wire.Held
	worker   layout.Name
	work     lent
	lease    time.Duration
	alone    bool
	expires  time.Time
	send     []string // folders
	robot    layout.Name
	prepared bool // the worker has asked for what the robot is given
	shared   bool // the worker shares the file system
	ending   bool // its end is being committed; no lease is judged, and no part is taken
	turns
	asked
	http *claimed // of a program that came over HTTP; nil: a worker's
}

// turns are the locks of a loan.
type turns struct {
	prepare sync.Mutex   // held while what the robot is given is prepared: the attempt is not ended meanwhile
	parts   sync.RWMutex // held while some bytes of a part are written
}

// lent is what a worker has: a step's attempt, or a rehearsal of one.
type lent interface {
	// Prepare gives what the robot is given, and Again gives it once more.
	Prepare(ctx context.Context) (*steps.Call, *state.Step, error)
	Again(ctx context.Context) (*steps.Call, *state.Step, error)
	Scratch() string
	End(ctx context.Context, res steps.Result, failure error, log string) error
	GiveUp(ctx context.Context, why string) error
	LostBefore() int
	Leave()
}

var _ = []lent{(*attempt.Away)(nil), (*attempt.Rehearsal)(nil)}

// asked is what a loan was before it was granted.
type asked struct {
	offer  string        // its identifier
	want   string        // what it asked for
	waited time.Duration // from the offer to the grant
	quick  bool          // what its robot is given is soon prepared
}

// Answer answers what a worker asks; name is proven by its key.
func (r *Remote) Answer(name layout.Name, verb string, data []byte) []byte {
	reply, err := r.answer(name, verb, data)
	if err != nil {
		r.rooms.Log.Warn("a worker's message was refused", "worker", name, "verb", verb, "err", err)
		r.refused(name)
		reply = wire.Refusal{Head: wire.Now(), Refused: err.Error()}
	}
	out, err := encoded(reply)
	if err != nil {
		r.rooms.Log.Error("answer a worker", "worker", name, "verb", verb, "err", err)
		return nil
	}
	return out
}

// encoded gives the bytes of an answer. A grant goes without its call where that is more, with the records, than a message
// carries: then the worker fetches it.
func encoded(reply wire.Message) ([]byte, error) {
	if g, is := reply.(wire.Grant); is && g.Call != nil {
		if data, err := wire.EncodeCarrying(g); err == nil {
			return data, nil
		}
		g.Call = nil
		reply = g
	}
	return wire.Encode(reply)
}

func (r *Remote) answer(name layout.Name, verb string, data []byte) (wire.Message, error) {
	if r.place.Known != nil && !r.place.Known(name) {
		gate{r}.drop(name)
		if verb == wire.VerbHello {
			return wire.Welcome{Head: wire.Now(), Refused: "the key is not known here, or was revoked"}, nil
		}
		return nil, errors.New("the key is not known here, or was revoked")
	}
	if len(data) > wire.MaxMessage {
		return nil, fmt.Errorf("a message of %d bytes", len(data))
	}
	switch verb {
	case wire.VerbHello:
		var h wire.Hello
		if err := wire.Decode(data, &h); err != nil {
			return nil, err
		}
		return gate{r}.hello(name, h), nil
	case wire.VerbClaim:
		var c wire.Claim
		if err := wire.Decode(data, &c); err != nil {
			return nil, err
		}
		return r.claim(name, c), nil
	case wire.VerbEnd:
		var e wire.Ending
		if err := wire.Decode(data, &e); err != nil {
			return nil, err
		}
		return transfer{r}.told(name, e), nil
	case wire.VerbBeat:
		var b wire.Beat
		if err := wire.Decode(data, &b); err != nil {
			return nil, err
		}
		return r.beat(name, b), nil
	case wire.VerbControl:
		var c wire.Control
		if err := wire.Decode(data, &c); err != nil {
			return nil, err
		}
		return r.control(name, c), nil
	}
	return nil, fmt.Errorf("no verb %q", verb)
}

// claim commits the attempt at an offered step and grants it. A worker that asks again gets
// the same answer.
func (r *Remote) claim(name layout.Name, c wire.Claim) wire.Grant {
	g := wire.Grant{Head: wire.Now()}
	r.mu.Lock()
	w, o := r.workers[name], r.offers[c.Offer]
	again := r.granted[c.Offer]
	switch {
	case w == nil || w.Engine != c.Engine:
		g.Return = "say hello first"
	case again != nil && again.ref.Key.Engine == w.Engine && r.loans[again.ref] == again:
		r.mu.Unlock()
		return r.laden(again)
	case c.Epoch != r.epoch || o == nil:
		g.Gone = true
	case o.claiming:
		g.Again = true
	case w.lapses >= mostLapses && !w.pinged:
		r.mu.Unlock()
		if at := (gate{r}); !at.answers(name, w, pingTime) {
			g.Return = fmt.Sprintf("%d attempts in a row were lost or timed out, and it does not answer", mostLapses)
			return g
		}
		r.mu.Lock()
		w.pinged = true
		r.mu.Unlock()
		g = r.claim(name, c)
		r.mu.Lock()
		w.pinged = false
	case r.rooms.Room() != nil:
		g.Return = r.rooms.Room().Error()
	case r.elsewhere(w, o):
		g.Return = "another worker is to try it first"
	case r.closing || !w.works() || !w.meets(o.demand, r.rooms.Version):
		g.Return = "this worker is not to do it"
	default:
		r.table.claim(o)
		r.mu.Unlock()
		r.rooms.Nudge() // another may be offered in its place
		return r.lend(w, o)
	}
	r.mu.Unlock()
	return g
}

// mostLapses is how many attempts in a row a worker may lose, or let time out, before it must answer
// a ping for each grant; pingTime is how long it may take.
const mostLapses, pingTime = 3, time.Second

// elsewhere reports whether another worker should get a step that did not go well at this one; r.mu is held.
func (r *table) elsewhere(w *worker, o *offer) bool {
	e := o.work.Entry
	if r.failedAt[stepAt{e.Item.ID, e.Run, e.Step}] != w.Name || r.now().Sub(o.since) >= patience {
		return false
	}
	for _, other := range r.workers {
		if other != w && other.works() && other.meets(o.demand, r.version) && other.Slots > r.running(other) {
			return true
		}
	}
	return false
}

// lend commits the claim. The commit is not ended by a worker that does not wait for it.
func (r *Remote) lend(w *worker, o *offer) wire.Grant {
	ctx := context.Background()
	by := attempt.Worker{Engine: w.Engine, Runner: r.rooms.Attempts.RunnerOf(fmt.Sprintf("%s@%s:%d", w.Name, w.Host, w.PID)), Version: w.versionOf(o.demand.Want), Name: w.Name}
	// Before the commit: an attempt of a worker that is not shown is taken for lost.
	r.shown(w)
	var ref layout.AttemptRef
	got := make(chan struct{})
	ref, ok := o.work.Lend(ctx, by, func(why error) {
		<-got
		r.cancel(ref, why)
	})
	defer close(got)
	r.mu.Lock()
	r.withhold(o)
	if !ok {
		r.mu.Unlock()
		return wire.Grant{Head: wire.Now(), Gone: true}
	}
	lease := time.Duration(o.demand.Lease)
	l := &loan{ref: ref, held: wire.HeldOf(ref, r.nonce(ref)), worker: w.Name, work: o.work, lease: lease, alone: o.demand.Alone,
		expires: r.rooms.Now().Add(lease), send: o.demand.Send, robot: o.demand.Robot, shared: w.Shared != "", asked: asked{o.id, o.demand.Want.String(), r.rooms.Now().Sub(o.since), o.quick}}
	r.granted[o.id] = l
	if !takeUp(r, l) {
		return l.grant()
	}
	return r.laden(l)
}

// takeUp enters a loan, and unlocks r.mu. One that was made while the engine let go of all is let go of too: false.
func takeUp(r *Remote, l *loan) bool {
	closing := r.closing
	if !closing {
		r.enter(l)
	}
	r.mu.Unlock()
	if closing {
		l.leave()
	}
	return !closing
}

// leave lets go of what the next engine adopts.
func (l *loan) leave() {
	l.prepare.Lock()
	defer l.prepare.Unlock()
	l.work.Leave()
}

func (l *loan) grant() wire.Grant {
	return wire.Grant{Head: wire.Now(), Cleared: true, Held: l.held, Lease: l.lease, Alone: l.alone}
}

// laden is the grant of a loan with what its robot is given, where a message carries its files: then the worker need not ask.
func (r *Remote) laden(l *loan) wire.Grant {
	g := l.grant()
	if !l.quick {
		return g
	}
	call, err := transfer{r}.given(context.Background(), l, true)
	switch {
	case errors.Is(err, errMuch):
		return g
	case err != nil:
		return wire.Grant{Head: wire.Now(), Gone: true}
	}
	g.Call = &call
	return g
}

// cancel ends an attempt that a person cancelled.
func (r *Remote) cancel(ref layout.AttemptRef, why error) {
	l := r.close(ref)
	if l == nil {
		return
	}
	r.tell(l.worker, wire.Orders{Head: wire.Now(), Cancel: []wire.Held{l.held}})
	l.prepare.Lock()
	defer l.prepare.Unlock()
	r.over(l, l.work.End(context.Background(), steps.Result{}, why, ""))
}

// over forgets a loan whose end is committed, or failed to be.
func (r *Remote) over(l *loan, err error) {
	r.mu.Lock()
	delete(r.loans, l.ref)
	delete(r.granted, l.offer)
	r.mu.Unlock()
	if err != nil && !errors.Is(err, context.Canceled) && !fault.Is(err, fault.Refused) {
		r.rooms.Log.Error("end an attempt of a worker", "item", l.ref.Item, "step", l.ref.Step, "attempt", l.ref.Key.String(), "worker", l.worker, "err", err)
	}
	r.rooms.Nudge()
}
