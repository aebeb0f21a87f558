package bus

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"

	"github.com/nats-io/nats.go"
)

// own is the embedded server, and an engine's connection to it.
func own(t testing.TB) (*Server, *Engine) {
	t.Helper()
	return served(t, func(string) (layout.Name, bool) { return "", false })
}

// keyed is own with the key of worker w, whose seed it gives, too.
func keyed(t *testing.T) (*Server, *Engine, string) {
	t.Helper()
	seed, public, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s, e := served(t, func(key string) (layout.Name, bool) { return "w", key == public })
	return s, e, seed
}

func served(t testing.TB, key func(string) (layout.Name, bool)) (*Server, *Engine) {
	t.Helper()
	s, err := Serve(ServerOptions{Listen: "127.0.0.1:0", Store: t.TempDir(), Key: key, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	e, err := s.Engine()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return s, e
}

// The server of this process syncs whatever it acknowledges, also after it began anew.
func TestTheEmbeddedServerSyncsAlways(t *testing.T) {
	s, _ := own(t)
	for range 2 {
		if c := s.running().JetStreamConfig(); c == nil || !c.SyncAlways {
			t.Fatalf("the store: %+v", c)
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
	}
}

// A consumer that was deleted alone is seen, though its stream is there; a stream that is made anew has it again, and
// delivers.
func TestADeletedConsumerIsSeenAndMadeAnew(t *testing.T) {
	_, e := own(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	class := wire.Want{Robot: "ocr"}.Class()
	filled := func(epoch string) {
		t.Helper()
		err := e.Begin(ctx, epoch)
		if err == nil {
			err = e.Class(ctx, class)
		}
		if err == nil {
			_, err = e.Publish(ctx, []Message{{class, []byte(epoch + "-1")}, {class, []byte(epoch + "-2")}})
		}
		if err != nil {
			t.Fatal(err)
		}
		if at, n, err := e.Look(ctx); err != nil || at != epoch || n != 2 {
			t.Fatalf("epoch %s: %q, %d offers, %v", epoch, at, n, err)
		}
	}
	filled("one")
	if q, err := e.Queue(ctx, class); err != nil || q.Pending != 2 {
		t.Fatalf("the queue: %+v, %v", q, err)
	}
	if err := e.js.DeleteConsumer(ctx, wire.Stream, class); err != nil {
		t.Fatal(err)
	}
	if q, err := e.Queue(ctx, class); err == nil {
		t.Errorf("a queue whose consumer is gone: %+v", q)
	}
	filled("two")
	w := &Worker{conn: e.conn, pulls: map[string][]chan *nats.Msg{}, cut: make(chan struct{})}
	if err := w.listen(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"two-1", "two-2"} {
		p, ok, err := w.Pull(ctx, class, 5*time.Second)
		if err != nil || !ok || string(p.Data()) != want {
			t.Fatalf("pulled %v, %v; want %s", ok, err, want)
		}
		p.Done()
	}
	if err := e.js.DeleteStream(ctx, wire.Stream); err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.Look(ctx); err != ErrNoStream {
		t.Errorf("a stream that is gone: %v", err)
	}
}

// A pull ends when the server that it waits at is gone, not when its time is over; what is offered at the new one
// is pulled at once, also after a pull that was given up.
func TestAPullEndsWithItsConnection(t *testing.T) {
	class, wait := wire.Want{Robot: "ocr"}.Class(), time.Minute
	s, e, seed := keyed(t)
	back := make(chan struct{}, 10)
	w, err := Dial(DialOptions{Name: "w", Outside: Outside{URLs: []string{"nats://" + s.Addr()}, Seed: seed}, Changed: func(text string) {
		if strings.Contains(text, "again") {
			back <- struct{}{}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	begin := func(epoch string) { // as often as it takes the engine to come back, too
		t.Helper()
		for errors.Join(e.Begin(ctx, epoch), e.Class(ctx, class)) != nil {
			if ctx.Err() != nil {
				t.Fatal(ctx.Err())
			}
		}
	}
	pulling := func(ctx context.Context) (ended chan error) {
		t.Helper()
		ended = make(chan error, 1)
		go func() {
			_, _, err := w.Pull(ctx, class, wait)
			ended <- err
		}()
		for {
			if q, err := e.Queue(ctx, class); err != nil || ctx.Err() != nil {
				t.Fatal(err, ctx.Err())
			} else if q.Pulling == 1 {
				return ended
			}
		}
	}
	begin("one")
	ended := pulling(ctx)
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || ctx.Err() != nil {
		t.Fatalf("a pull whose server is gone: %v, %v", err, ctx.Err())
	}
	<-back
	begin("two")
	given, stop := context.WithCancel(ctx)
	ended = pulling(given)
	stop()
	<-ended
	if _, err := e.Publish(ctx, []Message{{class, []byte("first")}}); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	p, ok, err := w.Pull(ctx, class, wait)
	if err != nil || !ok || string(p.Data()) != "first" || time.Since(begun) > ackWait/2 {
		t.Fatalf("pulled %v, %v after %s", ok, err, time.Since(begun))
	}
}

// Offers are taken out of the stream together, those of a class alone: what was pulled and not acknowledged is not delivered
// again, and what stands is delivered still.
func TestOffersAreClearedTogether(t *testing.T) {
	_, e := own(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	class, other := wire.Want{Robot: "ocr"}.Class(), wire.Want{Robot: "scan"}.Class()
	if err := errors.Join(e.Begin(ctx, "one"), e.Class(ctx, class), e.Class(ctx, other)); err != nil {
		t.Fatal(err)
	}
	var places []uint64
	for _, all := range [][]Message{{{class, []byte("1")}}, {{class, []byte("2")}, {other, []byte("3")}, {class, []byte("4")}}, {{class, []byte("5")}}} {
		put, err := e.Publish(ctx, all)
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, put...)
	}
	if want := []uint64{1, 2, 3, 4, 5}; !slices.Equal(places, want) {
		t.Fatalf("the offers are at %v, want %v", places, want)
	}
	w := &Worker{conn: e.conn, pulls: map[string][]chan *nats.Msg{}, cut: make(chan struct{})}
	if err := w.listen(); err != nil {
		t.Fatal(err)
	}
	pulled := func(class string, want string) {
		t.Helper()
		p, ok, err := w.Pull(ctx, class, ackWait+5*time.Second)
		if err != nil || !ok || string(p.Data()) != want {
			t.Fatalf("pulled %v, %v; want %s", ok, err, want)
		}
	}
	for _, want := range []string{"1", "2", "4"} {
		pulled(class, want)
	}
	if err := e.Clear(ctx, class, places[3]); err != nil {
		t.Fatal(err)
	}
	if _, n, err := e.Look(ctx); err != nil || n != 3 {
		t.Errorf("%d offers are left, %v; want 3", n, err)
	}
	pulled(other, "3")
	pulled(class, "5")
	pulled(class, "4") // again: it stands, and was not acknowledged
}

// The server answers after the beats that came before are answered, also where they wait for a processor.
func TestBeatsAreHeardBeforeTheServerAnswers(t *testing.T) {
	_, e := own(t)
	going, heard := make(chan struct{}), atomic.Int64{}
	err := e.Answer(func(layout.Name, string, []byte) []byte {
		<-going
		heard.Add(1)
		return []byte("ok")
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := e.conn.PublishRequest(wire.AskSubject("w", wire.VerbBeat), "nobody", nil); err != nil {
			t.Fatal(err)
		}
	}
	late, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if e.Answers(late) {
		t.Error("it answers before the beats are answered")
	}
	close(going)
	if !e.Answers(t.Context()) {
		t.Error("it does not answer")
	}
	if n := heard.Load(); n != 3 {
		t.Errorf("%d of 3 beats were answered before", n)
	}
}

// Beats are answered while as many claims as may be are being answered, and more wait.
func TestBeatsDoNotWaitBehindClaims(t *testing.T) {
	_, e := own(t)
	done := make(chan struct{})
	err := e.Answer(func(_ layout.Name, verb string, _ []byte) []byte {
		if verb != wire.VerbBeat {
			<-done
		}
		return []byte(verb)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer close(done)
	for range mostAsked + 1 {
		if err := e.conn.PublishRequest(wire.AskSubject("w", wire.VerbClaim), "nobody", nil); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		if m, err := e.conn.RequestWithContext(ctx, wire.AskSubject("w", wire.VerbBeat), nil); err != nil || string(m.Data) != wire.VerbBeat {
			t.Fatalf("a beat is answered %v, %v", m, err)
		}
	}
}

// A key speaks for its own worker alone: it may not ask in the name of another, hear what is for another or for the engine, give
// orders, offer anything, nor change the stream.
func TestAKeySpeaksForItselfAlone(t *testing.T) {
	s, e, seed := keyed(t)
	class := wire.Want{Robot: "ocr"}.Class()
	if err := errors.Join(e.Begin(t.Context(), "one"), e.Class(t.Context(), class)); err != nil {
		t.Fatal(err)
	}
	means, err := Outside{Seed: seed}.means()
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan string, 100)
	c, err := nats.Connect("nats://"+s.Addr(), append(means, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err.Error() }))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	says := func(subject string) {
		t.Helper()
		if err := errors.Join(c.Publish(subject, nil), c.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	hears := func(subject string) {
		t.Helper()
		if _, err := c.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for _, subject := range []string{wire.AskSubject("w", wire.VerbHello), nextSubject + class} {
		says(subject)
	}
	for _, subject := range []string{wire.TellSubject("w"), pullInbox("w") + "*"} {
		hears(subject)
	}
	select {
	case why := <-refused:
		t.Errorf("what is its own is refused: %s", why)
	default:
	}
	for what, subjects := range map[string][]string{
		"publish": {wire.AskSubject("other", wire.VerbHello), wire.AskSubject(wire.Operator, wire.VerbControl), wire.TellSubject("other"), pullInbox("other") + "1", wire.OfferSubject(class), wire.KeysSubject, wire.PingSubject,
			"$JS.API.STREAM.DELETE." + wire.Stream, "$JS.API.STREAM.PURGE." + wire.Stream, "$JS.API.STREAM.MSG.GET." + wire.Stream, "$JS.API.CONSUMER.DELETE." + wire.Stream + "." + class, "$SYS.REQ.SERVER.PING"},
		"subscription": {">", "bagpipe.>", wire.AskSubject("w", ">"), wire.TellSubject("other"), wire.InboxPrefix("other") + ".>", wire.InboxPrefix(wire.Operator) + ".>", wire.OfferSubject(class), "_INBOX.>"},
	} {
		for _, subject := range subjects {
			if what == "publish" {
				says(subject)
			} else {
				hears(subject)
			}
			select {
			case why := <-refused:
				if !strings.Contains(strings.ToLower(why), "permissions violation for "+what+" to "+strings.ToLower(`"`+subject+`"`)) {
					t.Errorf("%s to %s: %s", what, subject, why)
				}
			case <-time.After(10 * time.Second):
				t.Errorf("a %s to %s is let through", what, subject)
			}
		}
	}
}
