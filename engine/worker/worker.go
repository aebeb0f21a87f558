package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"

	"github.com/gofrs/flock"
)

// Link carries messages to the engine and back. It comes back by itself where it is cut.
type Link interface {
	Ask(ctx context.Context, verb string, data []byte) ([]byte, error)
	// Listen has f hear the orders that come between beats, one at a time.
	Listen(f func(data []byte)) error
	// Pull waits for an offer of a class; ok is false where none came in time.
	Pull(ctx context.Context, class string, wait time.Duration) (p Pulled, ok bool, err error)
	// Gone is closed when the engine's server does not let this worker in any more.
	Gone() <-chan struct{}
}

// Pulled is an offer that this worker has until it answers; unanswered, another gets it.
type Pulled interface {
	Data() []byte
	Done()    // it is out of the stream
	Return()  // another worker gets it, now
	Later()   // another worker gets it, or this one a little later
	Working() // asks for more time
}

// Options are what a Worker needs from outside.
type Options struct {
	Config   *Config
	Key      wire.Key
	Link     Link
	Engine   layout.EngineID // drawn for this process
	Build    string          // of this program
	Host     string
	Builtins map[layout.Name]steps.Builtin
	Log      *slog.Logger
	Say      func(text string)
	Now      func() time.Time // monotonic
}

// Worker performs steps.
type Worker struct {
	o      Options
	http   *http.Client
	robots []wire.Robot
	cache  *cache
	lock   *flock.Flock // on the folder

	gone    chan error               // the engine does not want this worker any more
	room    *room                    // for slots and those claimed ahead
	telling chan struct{}            // attempts whose end is told while another has their room
	slots   chan struct{}            // robots at work
	each    map[string]chan struct{} // by robot, of those with instances
	wg      sync.WaitGroup           // attempts and pulls

	mu sync.Mutex // guards the rest
	state
}

// state is what changes while a worker works.
type state struct {
	welcome  wire.Welcome // the engine's last
	shared   string       // what the engine's probe holds, where it was found
	running  map[layout.AttemptRef]*attempt
	classes  map[string]context.CancelFunc // pulls by class
	heard    time.Time                     // the engine's last answer
	draining bool
	stopped  bool
	ends     []bool        // of the last attempts: the robot failed
	lease    time.Duration // the shortest that is held, or the engine's
	sooner   chan struct{} // has room for one, and needs no lock: the next beat may be due earlier
}

// ErrRefused is an engine's word that this worker is not wanted.
type ErrRefused struct{ Why string }

func (e *ErrRefused) Error() string { return "the engine refused this worker: " + e.Why }

// New prepares a worker: its folder, its robots.
func New(o Options) (*Worker, error) {
	if err := o.Config.fill(o.Key.Name); err != nil {
		return nil, err
	}
	config, err := o.Key.TLS()
	if err != nil {
		return nil, err
	}
	w := &Worker{o: o, http: &http.Client{Transport: &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: o.Config.Slots + o.Config.Prefetch,
		DialContext: dialer().DialContext, ReadBufferSize: smallFile, WriteBufferSize: smallFile, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: 10 * time.Minute, TLSHandshakeTimeout: 10 * time.Second}},
		gone: make(chan error, 1), room: newRoom(o.Config.Slots + o.Config.Prefetch), telling: make(chan struct{}, o.Config.Slots+o.Config.Prefetch), slots: make(chan struct{}, o.Config.Slots), each: map[string]chan struct{}{}}
	w.running, w.classes, w.sooner = map[layout.AttemptRef]*attempt{}, map[string]context.CancelFunc{}, make(chan struct{}, 1)
	for _, r := range o.Config.Robots {
		if r.Instances > 0 {
			w.each[r.name()] = make(chan struct{}, r.Instances)
		}
	}
	if w.robots, err = o.Config.offered(o.Build, o.Builtins); err != nil {
		return nil, err
	}
	if w.lock, err = lockFolder(o.Config.Folder); err != nil {
		return nil, err
	}
	if err := clearAttempts(w.attempts()); err != nil {
		return nil, err
	}
	w.cache = newCache(filepath.Join(o.Config.Folder, "cache"), int64(o.Config.Cache))
	return w, nil
}

// lockFolder keeps two workers out of one folder: each would remove what the other works on.
// The lock ends with the process.
func lockFolder(dir string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(dir, "lock"))
	if free, err := lock.TryLock(); err != nil || !free {
		return nil, errors.Join(err, fmt.Errorf("another worker works in %s; give each a folder: of its own", dir))
	}
	return lock, nil
}

// clearAttempts removes what a worker before left of its attempts.
func clearAttempts(dir string) error {
	if err := disk.RemoveTree(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.MkdirAll(dir, 0o700)
}

func (w *Worker) attempts() string { return filepath.Join(w.o.Config.Folder, "attempts") }

// ErrFailing says that a worker left as its robots fail.
var ErrFailing = errors.New("its robots fail")

// ended notes how a robot ended; where too many of the last failed, the worker leaves.
func (w *Worker) ended(failed bool) {
	e := w.o.Config.Errors
	if e.Count == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends = append(w.ends, failed); len(w.ends) > e.Window {
		w.ends = w.ends[1:]
	}
	n := 0
	for _, bad := range w.ends {
		if bad {
			n++
		}
	}
	if n < e.Count {
		return
	}
	w.ends = nil
	select {
	case w.gone <- fmt.Errorf("worker %s leaves: %w: %d of the last %d", w.o.Config.Name, ErrFailing, n, e.Window):
	default: // it is leaving
	}
}

// Run works until it is drained, by drain or by the engine, or ctx ends: then robots are ended
// and their attempts given back.
func (w *Worker) Run(ctx context.Context, drain <-chan struct{}) error {
	if err := (warming{w}).begin(ctx, drain); errors.Is(err, errDrained) {
		return nil
	} else if err != nil {
		return err
	}
	side, stop := context.WithCancel(ctx)
	defer stop()
	if err := w.o.Link.Listen(func(data []byte) { w.heardOrders(side, data) }); err != nil {
		return err
	}
	welcome := w.greeted()
	w.obey(side, welcome.Orders)
	w.o.Say(fmt.Sprintf("worker %s: %s, engine at %s", w.o.Config.Name, layout.Count(w.o.Config.Slots, "slot"), welcome.Transfer))
	var beating sync.WaitGroup
	beats, still := context.WithCancel(context.WithoutCancel(ctx)) // until the last attempt is given back
	defer still()
	beating.Go(func() { w.beating(beats) })
	err := w.untilEnd(side, drain)
	w.drain()
	w.countDown(ctx)
	w.wg.Wait()
	still()
	beating.Wait()
	w.lastBeat(context.WithoutCancel(ctx))
	return err
}

// untilEnd waits for a reason to end.
func (w *Worker) untilEnd(ctx context.Context, drain <-chan struct{}) error {
	told := time.NewTicker(500 * time.Millisecond)
	defer told.Stop()
	for {
		select {
		case <-drain:
			return nil
		case <-ctx.Done():
			w.endAll(context.Cause(ctx))
			return nil
		case <-w.o.Link.Gone():
			w.endAll(errRevoked)
			return &ErrRefused{"the key was revoked"}
		case err := <-w.gone:
			if !errors.Is(err, ErrFailing) {
				w.endAll(err)
			}
			return err
		case <-told.C:
			if w.isDraining() {
				return nil
			}
		}
	}
}

var errRevoked = errors.New("the worker's key was revoked")

// hello says who this is, until the engine answers.
func (w *Worker) hello(ctx context.Context) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		welcome, err := w.ask(ctx)
		if err == nil && welcome.Refused != "" {
			return &ErrRefused{welcome.Refused}
		}
		if err == nil && w.probe(welcome.Probe) {
			continue // tell that the file system is shared
		}
		if err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.hasten(welcome.Lease)
			w.welcome, w.heard, w.lease = welcome, w.o.Now(), welcome.Lease
			return nil
		}
		var other *wire.VersionError
		if errors.As(err, &other) {
			return &ErrRefused{"its program is another release than this one: " + err.Error()}
		}
		w.o.Log.Info("the engine does not answer", "err", err)
		select {
		case <-time.After(wait):
		case <-w.o.Link.Gone():
			return &ErrRefused{"the key is not known there, or was revoked"}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// greeted is how the engine welcomed this worker last.
func (w *Worker) greeted() wire.Welcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.welcome
}

// probe looks for the engine's file, where the worker may use a shared file system. It reports whether it was
// found, and not known before.
func (w *Worker) probe(path string) bool {
	if w.o.Config.Bytes == bytesTransfer {
		return false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fresh := w.shared != string(data)
	w.shared = string(data)
	return fresh
}

func (w *Worker) ask(ctx context.Context) (welcome wire.Welcome, err error) {
	var memory uint64
	if info, err := os.ReadFile("/proc/meminfo"); err == nil {
		_, _ = fmt.Sscanf(string(info), "MemTotal: %d kB", &memory) // 0 where the system does not tell
	}
	free, _ := disk.Free(w.o.Config.Folder)
	w.mu.Lock()
	shared := w.shared
	w.mu.Unlock()
	h := wire.Hello{Head: wire.Now(), Name: w.o.Key.Name, Engine: w.o.Engine, Build: w.o.Build,
		Machine: wire.Machine{Host: w.o.Host, PID: os.Getpid(), CPUs: runtime.NumCPU(), Memory: int64(memory) << 10, Scratch: int64(free)},
		Labels:  w.o.Config.Labels, Slots: w.o.Config.Slots, Prefetch: w.o.Config.Prefetch,
		Robots: w.robots, Shared: shared}
	data, err := wire.Encode(h)
	if err != nil {
		return welcome, err
	}
	return welcome, w.exchange(ctx, wire.VerbHello, data, &welcome)
}

// exchange asks, and reads the answer; a refusal is an error.
func (w *Worker) exchange(ctx context.Context, verb string, data []byte, answer wire.Message) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	reply, err := w.o.Link.Ask(ctx, verb, data)
	if err != nil {
		return err
	}
	if verb != wire.VerbHello && bytes.Contains(reply, []byte(`"refused"`)) {
		var no wire.Refusal
		if err := wire.Decode(reply, &no); err != nil {
			return err
		}
		if no.Refused != "" {
			return &ErrRefused{no.Refused}
		}
	}
	return wire.Decode(reply, answer)
}

// drain begins nothing more.
func (w *Worker) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.draining = true
	for class, stop := range w.classes {
		stop()
		delete(w.classes, class)
	}
}

// countDown tells how many attempts are left, until there are none. Once ctx ends it ends their robots, also of those
// that are granted still.
func (w *Worker) countDown(ctx context.Context) {
	told := -1
	for {
		if ctx.Err() != nil {
			w.endAll(context.Cause(ctx))
		}
		n := w.busy()
		if n != told {
			w.o.Say(fmt.Sprintf("worker %s: draining, %d at work", w.o.Config.Name, n))
			told = n
		}
		if n == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (w *Worker) isDraining() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.draining
}

func (w *Worker) busy() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.running)
}

// endAll ends every robot.
func (w *Worker) endAll(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.running {
		a.end(&givenBack{why})
	}
}
