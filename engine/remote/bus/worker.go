package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"

	"github.com/nats-io/nats.go"
)

// DialOptions say how a worker reaches its engine.
type DialOptions struct {
	Outside
	Name layout.Name
	// Changed is told, in words, when the connection was lost or came back.
	Changed func(text string)
}

// Worker is a worker's connection. It comes back by itself, without end.
type Worker struct {
	name layout.Name
	conn *nats.Conn

	mu    sync.Mutex                  // guards pulls and cut
	pulls map[string][]chan *nats.Msg // those that wait, by class; each has room for one
	cut   chan struct{}               // closed when this connection is lost
	gone  chan struct{}               // closed when the server will not have this key any more
}

// ErrRefused says that the server does not let the key in.
var ErrRefused = errors.New("the key is not known there, or was revoked")

// Dial connects to the first of the URLs that answers.
func Dial(o DialOptions) (*Worker, error) {
	means, err := o.means()
	if err != nil {
		return nil, err
	}
	w := &Worker{name: o.Name, pulls: map[string][]chan *nats.Msg{}, cut: make(chan struct{}), gone: make(chan struct{})}
	opts := append(append(lasting(), means...), nats.Name(string(o.Name)), nats.CustomInboxPrefix(wire.InboxPrefix(o.Name)),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			w.lost()
			if err != nil {
				o.Changed("the connection was lost: " + err.Error())
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) { o.Changed("connected again to " + c.ConnectedUrlRedacted()) }),
		nats.ClosedHandler(func(*nats.Conn) { close(w.gone) }))
	w.conn, err = nats.Connect(strings.Join(o.URLs, ","), opts...)
	if errors.Is(err, nats.ErrAuthorization) {
		return nil, ErrRefused
	}
	if err != nil {
		return nil, err
	}
	return w, w.listen()
}

// listen begins to hear what pulls wait for.
func (w *Worker) listen() error {
	_, err := w.conn.Subscribe(pullInbox(w.name)+"*", w.hear)
	return err
}

// nextSubject is where a class's queue is asked for offers; pullInbox is where a worker hears them.
const nextSubject = "$JS.API.CONSUMER.MSG.NEXT." + wire.Stream + "."

func pullInbox(name layout.Name) string { return wire.InboxPrefix(name) + ".pull." }

// Gone is closed when the connection has ended for good: the key was revoked, or Close called.
func (w *Worker) Gone() <-chan struct{} { return w.gone }

// Close ends the connection.
func (w *Worker) Close() { w.conn.Close() }

// Ask asks the engine, and waits for its answer.
func (w *Worker) Ask(ctx context.Context, verb string, data []byte) ([]byte, error) {
	m, err := w.conn.RequestWithContext(ctx, wire.AskSubject(w.name, verb), data)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

// Listen has f hear the engine's orders, one at a time.
func (w *Worker) Listen(f func(data []byte)) error {
	_, err := w.conn.Subscribe(wire.TellSubject(w.name), func(m *nats.Msg) { f(m.Data) })
	return err
}

// Pulled is an offer that this worker has until it answers. One that is not answered in a few
// seconds goes to another.
type Pulled struct{ m *nats.Msg }

// Data is the message.
func (p Pulled) Data() []byte { return p.m.Data }

// Done takes the offer out of the stream.
func (p Pulled) Done() { _ = p.m.Ack() }

// Return gives the offer to another worker.
func (p Pulled) Return() { _ = p.m.Nak() }

// Later gives the offer to another worker, or to this one after a little.
func (p Pulled) Later() { _ = p.m.NakWithDelay(200 * time.Millisecond) }

// Working asks for more time.
func (p Pulled) Working() { _ = p.m.InProgress() }

// lost ends the pulls of a connection: the server that they wait at may be gone, and would answer none of them.
func (w *Worker) lost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.cut)
	w.cut = make(chan struct{})
}

// hear gives what comes to a pull of its class: one answer comes for each, and the offers of a class are alike. An offer that
// nobody waits for goes to another worker: its pull was given up meanwhile.
func (w *Worker) hear(m *nats.Msg) {
	class := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	w.mu.Lock()
	defer w.mu.Unlock()
	if waiting := w.pulls[class]; len(waiting) > 0 {
		w.pulls[class] = waiting[1:]
		waiting[0] <- m // has room for it
	} else if m.Header.Get(statusHeader) == "" {
		Pulled{m}.Return()
	}
}

// pullGrace is for the server's word that no offer came in time.
const pullGrace = 500 * time.Millisecond

// statusHeader is of a message that is no offer, but says why none comes.
const statusHeader = "Status"

// pullRequest asks a class's queue for one offer. The server forgets it after Expires.
type pullRequest struct {
	Batch   int           `json:"batch"`
	Expires time.Duration `json:"expires"`
}

// Pull waits for one offer of a class; ok is false where none came in time. It ends with an error when the connection
// is lost. All pulls share one subscription: making one for each takes the server longer than the offer.
func (w *Worker) Pull(ctx context.Context, class string, wait time.Duration) (p Pulled, ok bool, err error) {
	request, err := json.Marshal(pullRequest{1, wait})
	if err != nil {
		return p, false, err
	}
	came := make(chan *nats.Msg, 1)
	w.mu.Lock()
	w.pulls[class] = append(w.pulls[class], came)
	cut := w.cut
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.pulls[class] = slices.DeleteFunc(w.pulls[class], func(c chan *nats.Msg) bool { return c == came })
		w.mu.Unlock()
		if late := len(came) > 0; late && !ok {
			if m := <-came; m.Header.Get(statusHeader) == "" {
				Pulled{m}.Return()
			}
		}
	}()
	if err := w.conn.PublishRequest(nextSubject+class, pullInbox(w.name)+class, request); err != nil {
		return p, false, err
	}
	ctx, stop := context.WithTimeout(ctx, wait+pullGrace)
	defer stop()
	select {
	case m := <-came:
		switch status := m.Header.Get(statusHeader); status {
		case "":
			return Pulled{m}, true, nil
		case "404", "408": // none came in time
			return p, false, nil
		default:
			return p, false, fmt.Errorf("pull an offer of class %s: %s %s", class, status, m.Header.Get("Description"))
		}
	case <-cut:
		return p, false, nats.ErrDisconnected
	case <-ctx.Done():
		return p, false, nil
	}
}
