package client

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"bagpipe/layout"
)

// The kinds of events.
const (
	EventSent       = "sent"       // a submission became an item
	EventClaimed    = "claimed"    // a step was begun: by which worker, and process
	EventStep       = "step"       // a step ended, or waits again
	EventItem       = "item"       // nothing of the item goes on by itself any more
	EventBatch      = "batch"      // Complete has seen the end of a batch
	EventConnection = "connection" // the server was lost, or is reached again
)

// Event is what happened to an item that this client submitted or attached to.
type Event struct {
	Kind  string
	At    time.Time
	Item  layout.ItemID
	Key   string
	Batch string

	Workflow, Step, Attempt string
	Status                  string // of a step

	Worker, Host, PID string // who claimed it; Worker is "" on the engine's machine
	Err               error  // of a connection that was lost; nil: it is there again
}

// ErrClosed says that the client was closed.
var ErrClosed = errors.New("the client was closed")

// watch follows the server's events while something is under way, and tells who waits.
type watch struct {
	c      *Client
	closed chan struct{}
	wg     sync.WaitGroup
	turn   sync.Mutex // held while it begins

	mu    sync.Mutex // guards the rest
	stop  context.CancelFunc
	sent  map[layout.ItemID][]*Sent
	early []Event            // of items that nobody submitted here, or not yet
	fresh []layout.ItemID    // to be looked at once all that happened to them is told
	nudge context.CancelFunc // ends the poll under way
	ears  []*ear
}

// mostEarly bounds the events that are kept for a submission whose answer has not come.
const mostEarly = 10_000

// ear is one who listens to events; what it has not heard yet waits.
type ear struct {
	mu    sync.Mutex // guards heard
	heard []Event
	more  chan struct{}
}

// begin follows the events from now on, before anything is sent of which they tell.
func (w *watch) begin(ctx context.Context) error {
	w.turn.Lock()
	defer w.turn.Unlock()
	if w.stop != nil {
		return nil
	}
	var at struct{ Last string }
	if err := lasting(ctx, func() error { return w.c.call(ctx, http.MethodGet, "events?wait=1ms", nil, &at) }); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.closed:
		return ErrClosed
	default:
	}
	following, stop := context.WithCancel(context.Background())
	w.stop, w.nudge = stop, func() {}
	w.wg.Go(func() { w.follow(following, at.Last) })
	return nil
}

// add watches a submission until its item's end, and tells what was heard of it already.
func (w *watch) add(s *Sent) {
	w.mu.Lock()
	select {
	case <-w.closed:
		w.mu.Unlock()
		return
	default:
	}
	w.sent[s.Item] = append(w.sent[s.Item], s)
	var early []Event
	w.early = slices.DeleteFunc(w.early, func(e Event) bool {
		if e.Item != s.Item {
			return false
		}
		e.Key = s.Key
		early = append(early, e)
		return true
	})
	w.fresh = append(w.fresh, s.Item) // it may have ended before anyone watched
	w.nudge()
	w.mu.Unlock()
	for _, e := range early {
		w.tell(e)
	}
}

// look asks how items stand, and gives those that are over.
func (w *watch) look(ctx context.Context, ids []layout.ItemID) (over []layout.ItemID) {
	for _, id := range ids {
		if d, err := w.c.detail(ctx, id); err == nil && d.over() {
			over = append(over, id)
		}
	}
	return over
}

// end ends those that wait for an item that is over.
func (w *watch) end(id layout.ItemID) {
	w.mu.Lock()
	over := w.sent[id]
	delete(w.sent, id)
	w.mu.Unlock()
	for _, s := range over {
		s.once.Do(func() {
			w.tell(Event{Kind: EventItem, At: time.Now(), Item: id, Key: s.Key})
			s.free()
			close(s.ended)
		})
	}
}

// transition is one as the engine tells of it.
type transition struct {
	Time                               time.Time
	Item                               layout.ItemID
	Workflow, Step, To, Attempt, Agent string
}

// pass tells of a transition of an item that this client sent, and reports whether it is of one.
// Those of others are kept for a while, as an answer to a submission may come after them.
func (w *watch) pass(e transition) bool {
	told := Event{Kind: EventStep, At: e.Time, Item: e.Item, Workflow: e.Workflow, Step: e.Step, Attempt: e.Attempt, Status: e.To}
	told.Worker, told.Host, told.PID = performer(e.Agent)
	if e.To == "in-progress" {
		told.Kind = EventClaimed
	}
	w.mu.Lock()
	ours := w.sent[e.Item]
	if len(ours) == 0 && e.Step != "" {
		if w.early = append(w.early, told); len(w.early) > mostEarly {
			w.early = w.early[1:]
		}
	}
	w.mu.Unlock()
	if len(ours) == 0 {
		return false
	}
	if told.Key = ours[0].Key; e.Step != "" {
		w.tell(told)
	}
	return true
}

// follow long-polls the events after a commit until the client is closed.
func (w *watch) follow(ctx context.Context, after string) {
	lost := false
	var over []layout.ItemID // they may have ended after what the last poll told: their ends are told after the next
	for ctx.Err() == nil {
		var got struct {
			Last   string
			Events []transition
		}
		polling, fresh, wait := w.poll(ctx, len(over) > 0)
		q := url.Values{"wait": {wait}, "after": {after}}
		if after == "" { // from now on
			q = url.Values{"wait": {"1ms"}}
		}
		err := w.c.call(polling, http.MethodGet, "events?"+q.Encode(), nil, &got)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && polling.Err() != nil: // something was submitted meanwhile
			continue
		case err != nil:
			w.mu.Lock()
			w.fresh = append(fresh, w.fresh...)
			w.mu.Unlock()
		}
		switch {
		case is(err, http.StatusGone):
			after = ""
			continue
		case err != nil:
			if !lost {
				lost = true
				w.tell(Event{Kind: EventConnection, At: time.Now(), Err: err})
			}
			select {
			case <-time.After(500 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		if lost {
			lost = false
			w.tell(Event{Kind: EventConnection, At: time.Now()})
		}
		if after == "" { // the history is another one
			fresh = w.all()
		}
		after = got.Last
		for _, e := range got.Events {
			if w.pass(e) && !slices.Contains(fresh, e.Item) {
				fresh = append(fresh, e.Item)
			}
		}
		for _, id := range over {
			w.end(id)
		}
		over = w.look(ctx, fresh)
	}
}

// poll gives what the next poll is done under, and the items to be looked at after it, for whose
// sake it does not wait, nor where it is hurried; what is submitted while it waits ends it.
func (w *watch) poll(ctx context.Context, hurried bool) (polling context.Context, fresh []layout.ItemID, wait string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nudge() // the poll before is over
	fresh, w.fresh = w.fresh, nil
	if len(fresh) > 0 || hurried {
		w.nudge = func() {}
		return ctx, fresh, "1ms"
	}
	polling, w.nudge = context.WithCancel(ctx)
	return polling, nil, "30s"
}

// all are the items that are under way.
func (w *watch) all() []layout.ItemID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.sent))
}

// tell tells those who listen.
func (w *watch) tell(e Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	w.mu.Lock()
	ears := slices.Clone(w.ears)
	w.mu.Unlock()
	for _, l := range ears {
		l.mu.Lock()
		l.heard = append(l.heard, e)
		l.mu.Unlock()
		select {
		case l.more <- struct{}{}:
		default:
		}
	}
}

// Events gives what happens from now on to what this client submits or attaches to, in order,
// until ctx ends or the client is closed. What is not taken yet waits.
func (c *Client) Events(ctx context.Context) iter.Seq[Event] {
	l := &ear{more: make(chan struct{}, 1)}
	c.watch.mu.Lock()
	c.watch.ears = append(c.watch.ears, l)
	c.watch.mu.Unlock()
	return func(yield func(Event) bool) {
		defer func() {
			c.watch.mu.Lock()
			defer c.watch.mu.Unlock()
			c.watch.ears = slices.DeleteFunc(c.watch.ears, func(other *ear) bool { return other == l })
		}()
		for {
			l.mu.Lock()
			heard := l.heard
			l.heard = nil
			l.mu.Unlock()
			for _, e := range heard {
				if !yield(e) {
					return
				}
			}
			if len(heard) > 0 {
				continue
			}
			select {
			case <-l.more:
			case <-ctx.Done():
				return
			case <-c.watch.closed:
				return
			}
		}
	}
}

// Close ends what the client follows; items go on.
func (c *Client) Close() {
	w := c.watch
	w.mu.Lock()
	select {
	case <-w.closed:
		w.mu.Unlock()
		return
	default:
	}
	close(w.closed)
	stop := w.stop
	w.mu.Unlock()
	if stop != nil {
		stop()
	}
	w.wg.Wait()
}
