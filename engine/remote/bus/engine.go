package bus

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/nats-io/nuid"
)

const (
	// ackWait covers the exchange from a pull to a grant alone, not the run.
	ackWait = 5 * time.Second
	// mostAsked bounds the questions answered at once, and the beats beside them.
	mostAsked = 512
	// batchMost is how many offers are put into the stream together.
	batchMost = 500
)

// Engine is the engine's connection.
type Engine struct {
	conn     *nats.Conn
	js       jetstream.JetStream
	replicas int

	mu     sync.Mutex       // guards stream and made
	stream jetstream.Stream // nil: it is not made
	made   map[string]bool  // the classes that have a consumer
	answer sync.WaitGroup
}

// Engine connects this process to its server.
func (s *Server) Engine() (*Engine, error) {
	nc, err := nats.Connect("", append(lasting(), nats.InProcessServer(inProcess{s}), nats.Nkey(s.operator, signer(s.seed)))...)
	if err != nil {
		return nil, fmt.Errorf("connect to the NATS server of this process: %w", err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &Engine{replicas: 1, conn: nc, js: js, made: map[string]bool{}}, nil
}

// gatherTime is how long answers of several are waited for.
const gatherTime = 500 * time.Millisecond

// leastServer is the oldest version of a server that puts several offers into a stream together.
var leastServer = [2]int{2, 12}

// Outside says how a NATS server is reached that is not of this process.
type Outside struct {
	URLs []string
	TLS  *tls.Config // nil: without
	Seed string
	wire.Means
}

// means are the options by which a server is told who comes.
func (o Outside) means() ([]nats.Option, error) {
	var all []nats.Option
	switch {
	case o.Creds != "":
		all = append(all, nats.UserCredentials(o.Creds))
	case o.Token != "":
		token, err := os.ReadFile(o.Token)
		if err != nil {
			return nil, err
		}
		all = append(all, nats.Token(strings.TrimSpace(string(token))))
	case o.Cert != "" && o.NKey == "": // the certificate says it
	default:
		seed := []byte(o.Seed)
		if o.NKey != "" {
			data, err := os.ReadFile(o.NKey)
			if err != nil {
				return nil, err
			}
			seed = []byte(strings.TrimSpace(string(data)))
		}
		pair, err := nkeys.FromSeed(seed)
		if err != nil {
			return nil, fmt.Errorf("read the key: %w", err)
		}
		public, err := pair.PublicKey()
		if err != nil {
			return nil, err
		}
		all = append(all, nats.Nkey(public, signer(seed)))
	}
	if o.TLS != nil {
		all = append(all, nats.Secure(o.TLS))
	}
	if o.Cert != "" {
		all = append(all, nats.ClientCert(o.Cert, o.CertKey))
	}
	return all, nil
}

// DialEngine connects an engine to servers that are not of its process. A server that is too old, or has no
// JetStream, is refused.
func DialEngine(ctx context.Context, o Outside, log *slog.Logger) (*Engine, error) {
	means, err := o.means()
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(strings.Join(o.URLs, ","), append(append(lasting(), means...), nats.Name("engine"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("the NATS server", "err", err) }))...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", strings.Join(o.URLs, ", "), err)
	}
	js, err := jetstream.New(nc)
	if err == nil {
		err = suits(ctx, nc, js)
	}
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("connect to %s: %w", strings.Join(o.URLs, ", "), err)
	}
	e := &Engine{conn: nc, js: js, made: map[string]bool{}, replicas: 1}
	if len(o.URLs) >= manyServers {
		e.replicas = manyServers
	}
	return e, nil
}

// manyServers is how many servers hold the stream where there are as many.
const manyServers = 3

// suits refuses a server that does not do.
func suits(ctx context.Context, nc *nats.Conn, js jetstream.JetStream) error {
	version := nc.ConnectedServerVersion()
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || major < leastServer[0] || major == leastServer[0] && minor < leastServer[1] {
		return fmt.Errorf("the NATS server is of version %s; %d.%d or newer is needed", version, leastServer[0], leastServer[1])
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := js.AccountInfo(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) { // a cluster without its majority does not answer
		return fmt.Errorf("ask for JetStream: %w", err)
	}
	return nil
}

// inProcess connects to the server that runs now, also after a restart.
type inProcess struct{ s *Server }

func (p inProcess) InProcessConn() (net.Conn, error) { return p.s.running().InProcessConn() }

// lasting are the options of a connection that comes back without end and notices a dead peer
// in 15 seconds.
func lasting() []nats.Option {
	return []nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, time.Second),
		nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2), nats.ReconnectBufSize(-1), nats.Timeout(5 * time.Second)}
}

func signer(seed []byte) nats.SignatureHandler {
	return func(nonce []byte) ([]byte, error) {
		pair, err := nkeys.FromSeed(seed)
		if err != nil {
			return nil, err
		}
		return pair.Sign(nonce)
	}
}

// Close ends the connection, after the answers that are under way.
func (e *Engine) Close() {
	e.conn.Close()
	e.answer.Wait()
}

// Connected reports whether the server is reached.
func (e *Engine) Connected() bool { return e.conn.IsConnected() }

// Answers reports whether the server answers until ctx ends, after Answer has been called. The beats that came before are answered
// by then: a beat that waits here for a processor is no silence of its worker.
func (e *Engine) Answers(ctx context.Context) bool {
	_, err := e.conn.RequestWithContext(ctx, wire.AskSubject(wire.Operator, wire.VerbBeat), nil)
	return err == nil
}

// Answer has f answer what workers ask. Beats have a subscription and goroutines of their own: thousands of claims that
// wait for the disk would else have leases run out.
func (e *Engine) Answer(f func(name layout.Name, verb string, data []byte) []byte) error {
	beats := wire.AsksOf(wire.VerbBeat)
	for subject, own := range map[string]bool{beats: true, wire.AllAsks: false} {
		asked := make(chan struct{}, mostAsked)
		var before sync.WaitGroup
		_, err := e.conn.Subscribe(subject, func(m *nats.Msg) {
			name, verb, ok := wire.Asker(m.Subject)
			if !ok || m.Reply == "" || (verb == wire.VerbBeat) != own {
				return
			}
			if own && name == wire.Operator { // of Answers
				before.Wait()
				_ = m.Respond(nil)
				return
			}
			asked <- struct{}{}
			before.Add(1)
			e.answer.Go(func() {
				defer func() { <-asked; before.Done() }()
				if reply := f(name, verb, m.Data); reply != nil {
					_ = m.Respond(reply) // who asked asks again
				}
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Tell sends orders to a worker; one that is not there hears them at its next beat.
func (e *Engine) Tell(name layout.Name, data []byte) {
	_ = e.conn.Publish(wire.TellSubject(name), data)
}

// Begin makes the stream anew, empty, and names it by its epoch.
func (e *Engine) Begin(ctx context.Context, epoch string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stream, e.made = nil, map[string]bool{}
	if err := e.js.DeleteStream(ctx, wire.Stream); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("remove the stream of offers: %w", err)
	}
	stream, err := e.js.CreateStream(ctx, jetstream.StreamConfig{Name: wire.Stream, Subjects: []string{wire.AllOffers},
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, MaxMsgSize: wire.MaxMessage,
		Replicas: e.replicas, AllowAtomicPublish: true, Metadata: map[string]string{"epoch": epoch}})
	if err != nil {
		return fmt.Errorf("make the stream of offers: %w", err)
	}
	e.stream = stream
	return nil
}

// Class makes the consumer of a class, once in each epoch.
func (e *Engine) Class(ctx context.Context, class string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.made[class] {
		return nil
	}
	_, err := e.js.CreateOrUpdateConsumer(ctx, wire.Stream, jetstream.ConsumerConfig{Durable: class, FilterSubject: wire.OfferSubject(class),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxAckPending: -1, MaxWaiting: 16_384, MemoryStorage: true})
	if err != nil {
		return fmt.Errorf("make the queue of class %s: %w", class, err)
	}
	e.made[class] = true
	return nil
}

// Message is one offer and the class it goes to.
type Message struct {
	Class string
	Data  []byte
}

// Publish puts offers into the stream; those of one batch are there all, synced, or none. It gives their
// sequences in the stream, in which nobody else publishes.
func (e *Engine) Publish(ctx context.Context, offers []Message) (places []uint64, err error) {
	for len(offers) > 0 {
		n := min(batchMost, len(offers))
		last, err := e.publish(ctx, offers[:n])
		if err != nil {
			return nil, err
		}
		for i := range n {
			places = append(places, last-uint64(n-1-i))
		}
		offers = offers[n:]
	}
	return places, nil
}

// Clear takes the offers of a class out of the stream whose sequences are less than before. The server syncs its store
// once for all of them, and once for each message that is acknowledged.
func (e *Engine) Clear(ctx context.Context, class string, before uint64) error {
	e.mu.Lock()
	stream := e.stream
	e.mu.Unlock()
	if stream == nil {
		return ErrNoStream
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(wire.OfferSubject(class)), jetstream.WithPurgeSequence(before)); err != nil {
		return fmt.Errorf("take offers of class %s out of the stream: %w", class, err)
	}
	return nil
}

// putTime bounds the synced writing of one batch. A store whose files were deleted says nothing.
const putTime = 1500 * time.Millisecond

// publish gives the sequence of the last offer.
func (e *Engine) publish(ctx context.Context, offers []Message) (last uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	id := nuid.Next()
	for i, o := range offers {
		m := &nats.Msg{Subject: wire.OfferSubject(o.Class), Data: o.Data, Header: nats.Header{}}
		if len(offers) > 1 {
			m.Header.Set("Nats-Batch-Id", id)
			m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
		}
		if i < len(offers)-1 {
			if err := e.conn.PublishMsg(m); err != nil {
				return 0, err
			}
			continue
		}
		if len(offers) > 1 {
			m.Header.Set("Nats-Batch-Commit", "1")
		}
		answer, err := e.conn.RequestMsgWithContext(ctx, m)
		if err != nil {
			return 0, err
		}
		var took struct {
			Error json.RawMessage `json:"error"`
			Seq   uint64          `json:"seq"`
		}
		if err := json.Unmarshal(answer.Data, &took); err != nil || took.Error != nil {
			return 0, fmt.Errorf("put offers into the stream: %s", answer.Data)
		}
		last = took.Seq
	}
	return last, nil
}

// What Look answers where there are servers, but the stream is not there, or nothing can be put into it: of
// three servers two are gone, or they are choosing who leads. One that is left tells what it knew all the same.
var (
	ErrNoStream = errors.New("it is gone")
	ErrNoLeader = errors.New("none of the NATS servers leads the stream; they need a majority")
)

// lookTime bounds a look at servers that may be choosing who leads: nobody answers what was asked meanwhile, and what
// is asked afterwards is answered at once.
const lookTime = 2 * time.Second

// Look gives the epoch of the stream that is there, and how many offers are in it.
func (e *Engine) Look(ctx context.Context) (epoch string, offers uint64, err error) {
	within := ctx
	if e.replicas > 1 {
		var stop context.CancelFunc
		within, stop = context.WithTimeout(ctx, lookTime)
		defer stop()
	}
	stream, err := e.js.Stream(within, wire.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return "", 0, ErrNoStream
	}
	if err != nil && e.replicas > 1 && ctx.Err() == nil && e.Connected() {
		return "", 0, ErrNoLeader
	}
	if err != nil {
		return "", 0, err
	}
	info := stream.CachedInfo()
	if info.Cluster != nil && info.Cluster.Leader == "" {
		return "", 0, ErrNoLeader
	}
	return info.Config.Metadata["epoch"], info.State.Msgs, nil
}

// Queue is how a class's consumer stands.
type Queue struct {
	Pending uint64 // offers that nobody has pulled
	Pulling int    // workers that wait for one
}

// Queue looks at a class's consumer.
func (e *Engine) Queue(ctx context.Context, class string) (Queue, error) {
	c, err := e.js.Consumer(ctx, wire.Stream, class)
	if err != nil {
		return Queue{}, err
	}
	info := c.CachedInfo()
	return Queue{Pending: info.NumPending, Pulling: info.NumWaiting}, nil
}

// Behind names the servers that do not hold the stream, or a class's queue, as the one that leads does. One more that is
// lost then may cost seconds until the stream is made anew.
func (e *Engine) Behind(ctx context.Context) (servers []string, err error) {
	stream, err := e.js.Stream(ctx, wire.Stream)
	if err != nil {
		return nil, err
	}
	clusters := []*jetstream.ClusterInfo{stream.CachedInfo().Cluster}
	e.mu.Lock()
	classes := slices.Sorted(maps.Keys(e.made))
	e.mu.Unlock()
	for _, class := range classes {
		c, err := e.js.Consumer(ctx, wire.Stream, class)
		if err != nil {
			return nil, fmt.Errorf("look at the queue of class %s: %w", class, err)
		}
		clusters = append(clusters, c.CachedInfo().Cluster)
	}
	for _, c := range clusters {
		if c == nil { // of one server
			continue
		}
		for _, peer := range c.Replicas {
			if (!peer.Current || peer.Offline) && !slices.Contains(servers, peer.Name) {
				servers = append(servers, peer.Name)
			}
		}
	}
	slices.Sort(servers)
	return servers, nil
}
