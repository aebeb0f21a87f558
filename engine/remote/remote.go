package remote

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"bagpipe/engine/attempt"
	"bagpipe/engine/remote/bus"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// Broker carries messages; *bus.Engine is one.
type Broker interface {
	Begin(ctx context.Context, epoch string) error
	Class(ctx context.Context, class string) error
	Publish(ctx context.Context, offers []bus.Message) (places []uint64, err error)
	Clear(ctx context.Context, class string, before uint64) error
	Tell(name layout.Name, data []byte)
	Look(ctx context.Context) (epoch string, offers uint64, err error)
	Behind(ctx context.Context) (servers []string, err error)
	Queue(ctx context.Context, class string) (bus.Queue, error)
	Connected() bool
	Answers(ctx context.Context) bool // now, and after what came before
}

// Guests shows workers among the engines of the workspace; *claim.Engine does.
type Guests interface {
	ShowGuest(id layout.EngineID, worker string, pid int) error
	HideGuest(id layout.EngineID) error
}

// Rooms are what a Remote needs of the engine.
type Rooms struct {
	Attempts attempt.Abroad
	Settings *settings.Source
	Robots   map[layout.Name]steps.Builtin
	Guests   Guests
	Plans    func() []*state.Definition // in force, or of items
	Nudge    func()                     // has the dispatcher look again
	Version  string                     // of this program: built-in robots need the same
	Log      *slog.Logger
	Now      func() time.Time // monotonic
	Room     func() error     // why nothing may be written now
	Report   func(text string)
	Alarm    func(text string) // of what a person must know
}

// Place is where a Remote keeps its files, and how workers reach it.
type Place struct {
	Root    string
	ID      layout.EngineID
	URL     string // of NATS, for workers
	Broker  Broker
	Restart func() error // makes the broker anew when its stream cannot be
	// Start lets workers in, once the attempts that they may have are adopted; wait ends that.
	Start    func(ctx context.Context, r *Remote) (wait func(), err error)
	Twice    func(name layout.Name) bool // two connections have the key of this name; nil: who has it is asked
	Known    func(name layout.Name) bool // the key of this name is good; nil: the server has seen to that
	Warning  string                      // of the NATS server
	Plain    bool                        // it is reached without TLS
	Away     bool                        // here only what cannot go elsewhere
	Transfer string                      // the URL of the transfer, for workers
	Probe    string                      // a file's path and
	Probed   string                      // what it holds
	Secret   []byte                      // of the nonces
}

// Remote is the workers of one engine.
type Remote struct {
	rooms Rooms
	place Place

	fresh  chan struct{} // there are offers to be published
	doubts chan struct{} // the stream may be gone
	sums   sums
	feed   feed
	table
}

// New gives the workers of an engine; Run is what makes them work.
func New(rooms Rooms, place Place) *Remote {
	r := &Remote{rooms: rooms, place: place, fresh: make(chan struct{}, 1), doubts: make(chan struct{}, 1), table: newTable(rooms)}
	r.resuming = true
	return r
}

// Run offers, judges leases and tells how things stand, until ctx ends. Then what is on offer
// is taken back; attempts that workers have go on, and are adopted by the next engine.
func (r *Remote) Run(ctx context.Context) error {
	offers := stream{r}
	if err := offers.begin(ctx); err != nil { // it is tried again, and local steps go on
		offers.troubled(err)
	}
	wait, err := r.place.Start(ctx, r)
	if err != nil {
		return err
	}
	defer wait()
	var wg sync.WaitGroup
	wg.Go(func() { offers.publishing(ctx) })
	wg.Go(func() { r.judging(ctx) })
	wg.Go(func() { offers.watching(ctx) })
	<-ctx.Done()
	wg.Wait()
	r.leave()
	return nil
}

// leave takes back what is on offer, and lets go of what runs.
func (r *Remote) leave() {
	r.mu.Lock()
	r.closing = true
	back := r.takeBack(func(*offer) bool { return true })
	var left []*loan
	for ref, l := range r.loans {
		if !l.ending {
			left = append(left, l)
			delete(r.loans, ref)
		}
	}
	idle := map[layout.EngineID]bool{}
	for _, c := range r.claimants {
		idle[c.id] = true
	}
	r.mu.Unlock()
	withdraw(back)
	for _, l := range left {
		delete(idle, l.ref.Key.Engine)
		l.leave()
	}
	for id := range idle {
		_ = r.rooms.Guests.HideGuest(id) // a file that stays is swept by the next engine
	}
	r.saveStatus()
}

// nonce proves that an attempt was granted.
func (r *Remote) nonce(ref layout.AttemptRef) string {
	mac := hmac.New(sha256.New, r.place.Secret)
	mac.Write([]byte(wire.HeldOf(ref, "").Path()))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// signal has a goroutine look; it need not be told twice.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
