package bus

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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
	js   jetstream.JetStream

	mu    sync.Mutex // guards pulls and cut
	pulls map[string]jetstream.Consumer
	cut   chan struct{} // closed when this connection is lost
	gone  chan struct{} // closed when the server will not have this key any more
}

// ErrRefused says that the server does not let the key in.
var ErrRefused = errors.New("the key is not known there, or was revoked")

// Dial connects to the first of the URLs that answers.
func Dial(o DialOptions) (*Worker, error) {
	means, err := o.means()
	if err != nil {
		return nil, err
	}
	w := &Worker{name: o.Name, pulls: map[string]jetstream.Consumer{}, cut: make(chan struct{}), gone: make(chan struct{})}
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
	w.js, err = jetstream.New(w.conn)
	return w, err
}

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
type Pulled struct{ m jetstream.Msg }

// Data is the message.
func (p Pulled) Data() []byte { return p.m.Data() }

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

// Pull waits for one offer of a class; ok is false where none came in time. It ends with an error when the connection
// is lost. A pull that has ended is forgotten by the server, too: it would be given the offer of another.
func (w *Worker) Pull(ctx context.Context, class string, wait time.Duration) (p Pulled, ok bool, err error) {
	w.mu.Lock()
	c, cut := w.pulls[class], w.cut
	w.mu.Unlock()
	if c == nil {
		if c, err = w.js.Consumer(ctx, wire.Stream, class); err != nil {
			return p, false, err
		}
		w.mu.Lock()
		w.pulls[class] = c
		w.mu.Unlock()
	}
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	got, err := c.Fetch(1, jetstream.FetchContext(ctx))
	if err != nil {
		return p, false, err
	}
	select {
	case m, there := <-got.Messages():
		if there {
			return Pulled{m}, true, nil
		}
	case <-cut:
		return p, false, nats.ErrDisconnected
	}
	if err = got.Error(); errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return p, false, err
}
