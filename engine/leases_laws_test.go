package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/intake"
	"bagpipe/engine/remote"
	"bagpipe/engine/remote/bus"
	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/steps"

	"pgregory.net/rapid"
)

// lane is a broker in memory, which loses, repeats and reorders what it is given.
type lane struct {
	mu     sync.Mutex // guards the rest
	epoch  string
	offers [][]byte
	cut    bool // it answers nobody
	stuck  bool // it delivers nothing

	begins time.Duration // how long it takes to be made anew, before which it keeps what it has
}

func (l *lane) Begin(_ context.Context, epoch string) error {
	time.Sleep(l.begins)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch, l.offers = epoch, nil
	return nil
}

func (l *lane) Class(context.Context, string) error { return nil }

func (l *lane) Publish(_ context.Context, all []bus.Message) ([]uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range all {
		l.offers = append(l.offers, m.Data)
	}
	return nil, nil
}

func (l *lane) Clear(context.Context, string, uint64) error { return nil }

func (l *lane) Tell(layout.Name, []byte) {}

func (l *lane) Look(context.Context) (string, uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch, 1 << 20, nil
}

func (l *lane) Behind(context.Context) ([]string, error) { return nil, nil }

func (l *lane) Queue(context.Context, string) (bus.Queue, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stuck {
		return bus.Queue{Pending: uint64(len(l.offers)), Pulling: 1}, nil
	}
	return bus.Queue{}, nil
}

func (l *lane) Connected() bool { return true }

func (l *lane) Answers(context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.cut
}

func (l *lane) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
}

// take gives one of the offers; keep leaves it there, to be delivered again.
func (l *lane) take(n int, keep bool) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.offers) == 0 {
		return nil
	}
	n %= len(l.offers)
	data := l.offers[n]
	if !keep {
		l.offers = append(l.offers[:n:n], l.offers[n+1:]...)
	}
	return data
}

func (l *lane) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch, l.offers = "lost", nil
}

// lessees is a workspace whose steps are done by workers that the test plays.
type lessees struct {
	*site
	rt     *rapid.T
	lane   *lane
	offset atomic.Int64 // of the clock

	engine *engine.Engine
	remote *remote.Remote
	stop   context.CancelFunc
	ended  chan error

	last  map[string]string // by step, the attempt that was granted last
	took  []wire.Held       // whose ends were acknowledged
	hands []*hand
	early []*hand // those that are there before the engine looks at a step
}

// hand is one worker.
type hand struct {
	name    layout.Name
	id      layout.EngineID
	slots   int    // 0: 4
	version string // of its robot
	holds   []wire.Held
	stale   []wire.Held // it was told that these are not its

	classes []string // that it is to pull from
}

func (w *lessees) begin() {
	ctx, stop := context.WithCancel(context.Background())
	e, err := engine.Open(ctx, w.root, w.options())
	w.must(err)
	e.Ledger.Clock = func() time.Time { return time.Now().Add(time.Duration(w.offset.Load())) }
	w.engine, w.stop, w.ended = e, stop, make(chan error, 1)
	w.remote, err = e.Workers(remote.Place{Root: w.root, ID: e.ID(), Broker: w.lane, Restart: func() error { return nil }, Secret: bytes.Repeat([]byte{7}, 32),
		Start: func(context.Context, *remote.Remote) (func(), error) { return func() {}, nil }, Twice: func(layout.Name) bool { return false }}, func(string) {})
	w.must(err)
	for _, h := range w.early {
		w.hello(h)
	}
	go func() {
		_, err := e.Run(ctx, engine.RunOptions{Parallel: 1, Watch: true, Workers: w.remote})
		w.ended <- err
	}()
}

func (w *lessees) end() {
	w.stop()
	if err := <-w.ended; err != nil && !errors.Is(err, context.Canceled) {
		w.t.Fatal(err)
	}
	w.must(w.engine.Close())
}

func (w *lessees) say(h *hand, verb string, m, answer wire.Message) {
	data, err := wire.Encode(m)
	w.must(err)
	w.must(wire.Decode(w.remote.Answer(h.name, verb, data), answer))
}

func (w *lessees) hello(h *hand) {
	var welcome wire.Welcome
	w.say(h, wire.VerbHello, wire.Hello{Head: wire.Now(), Name: h.name, Engine: h.id, Machine: wire.Machine{Host: "far", PID: 1}, Slots: cmp.Or(h.slots, 4), Robots: []wire.Robot{{Name: "far-robot", Version: h.version}}}, &welcome)
	h.classes = welcome.Orders.Classes
}

func (w *lessees) claim(h *hand, n int, keep bool) {
	data := w.lane.take(n, keep)
	if data == nil {
		return
	}
	var offer wire.Offer
	w.must(wire.Decode(data, &offer))
	var g wire.Grant
	w.say(h, wire.VerbClaim, wire.Claim{Head: wire.Now(), Engine: h.id, Offer: offer.ID, Epoch: offer.Epoch}, &g)
	if g.Held.Item == "" {
		if !g.Gone && !keep { // it is given back
			_, err := w.lane.Publish(context.Background(), []bus.Message{{Data: data}})
			w.must(err)
		}
		return
	}
	for _, held := range h.holds {
		if held == g.Held {
			return // it was delivered again
		}
	}
	w.last[string(g.Held.Item)+" "+string(g.Held.Step)] = g.Held.Attempt
	h.holds = append(h.holds, g.Held)
}

func (w *lessees) beat(h *hand) {
	var o wire.Orders
	b := wire.Beat{Head: wire.Now(), Engine: h.id, State: "ready"}
	for _, held := range h.holds {
		b.Running = append(b.Running, wire.Told{Held: held, Percent: -1})
	}
	w.say(h, wire.VerbBeat, b, &o)
	if o.Unknown {
		w.hello(h)
		return
	}
	for _, lost := range o.Lost {
		for i, held := range h.holds {
			if held == lost {
				h.holds = append(h.holds[:i:i], h.holds[i+1:]...)
				h.stale = append(h.stale, lost)
				break
			}
		}
	}
}

// finish tells the end of an attempt, and checks that one which is not current is refused.
func (w *lessees) finish(held wire.Held) {
	call := httptest.NewRequest(http.MethodGet, "/"+held.Path()+"/call", nil)
	call.Header.Set("Authorization", "Bearer "+held.Nonce)
	w.remote.Handler().ServeHTTP(httptest.NewRecorder(), call) // what the robot is given is prepared
	data, err := wire.EncodeDocument(wire.EndOf(steps.Result{Message: "done"}, nil))
	w.must(err)
	q := httptest.NewRequest(http.MethodPost, "/"+held.Path()+"/end", bytes.NewReader(data))
	q.Header.Set("Authorization", "Bearer "+held.Nonce)
	a := httptest.NewRecorder()
	w.remote.Handler().ServeHTTP(a, q)
	if a.Code != http.StatusNoContent {
		return
	}
	if last := w.last[string(held.Item)+" "+string(held.Step)]; last != held.Attempt {
		w.rt.Fatalf("the end of attempt %s was taken after %s was granted", held.Attempt, last)
	}
	w.took = append(w.took, held)
}

// newLessees makes a workspace of items whose one step is for workers, with a lease of a second.
func newLessees(t *testing.T, items int) *lessees {
	t.Helper()
	w := &lessees{site: newSite(t), lane: &lane{}, last: map[string]string{}}
	w.must(os.WriteFile(filepath.Join(w.root, "workflows", "far.yaml"), []byte("schema: 1\nname: far\nsteps:\n  - name: register\n  - name: derive\n    command: [far-robot]\n"), 0o644))
	settings, err := os.ReadFile(filepath.Join(w.root, "bagpipe.yaml"))
	w.must(err)
	w.must(os.WriteFile(filepath.Join(w.root, "bagpipe.yaml"), append(settings, "\nworkers:\n  lease: 1s\n  lost: 1000\n  steps: {far/derive: {only: true}}\n"...), 0o644))
	drop := filepath.Join(t.TempDir(), "drop.txt")
	w.must(os.WriteFile(drop, []byte("x"), 0o644))
	w.do(func(e *engine.Engine) {
		for i := range items {
			_, err := e.Intake.Add(context.Background(), drop, intake.AddOptions{Workflow: "far", Label: fmt.Sprintf("item-%d", i)})
			w.must(err)
		}
	})
	return w
}

// An engine that the server does not answer hears no worker, and judges no lease until it does; then whole leases
// begin.
func TestNoLeaseIsJudgedWhileTheServerDoesNotAnswer(t *testing.T) {
	w := newLessees(t, 1)
	w.begin()
	h := &hand{name: "w", id: "0000abc0"}
	for begun := time.Now(); len(h.holds) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			t.Fatal("nothing was granted")
		}
		w.hello(h)
		w.claim(h, 0, false)
	}
	lost := func() bool { return strings.Contains(git(t, w.root, "log", "--format=%B"), "was not heard of for 1s") }
	w.lane.set(true)
	time.Sleep(3 * time.Second)
	if lost() {
		t.Fatal("a lease was judged while the engine was cut off")
	}
	w.lane.set(false)
	for begun := time.Now(); !lost(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			t.Fatal("the lease was not judged after the cut")
		}
	}
	w.end()
}

// TestLeasesObeyTheLaws: whatever offers, claims, beats, ends, clocks and restarts do, an end counts only if its
// attempt is the current one (law 5), each step is completed once, and no end that was acknowledged is lost (law 8).
func TestLeasesObeyTheLaws(t *testing.T) {
	few(t, "6")
	rapid.Check(t, func(rt *rapid.T) {
		const items = 3
		w := newLessees(t, items)
		w.rt = rt
		for i := range 2 {
			w.hands = append(w.hands, &hand{name: layout.Name(fmt.Sprintf("w%d", i)), id: layout.EngineID(fmt.Sprintf("%08x", 0xabc0+i))})
		}
		w.begin()
		for range rapid.IntRange(10, 30).Draw(rt, "events") {
			h := rapid.SampledFrom(w.hands).Draw(rt, "worker")
			switch rapid.SampledFrom([]string{"hello", "claim", "claim", "claim", "beat", "end", "end", "late", "pass", "pass", "pass", "jump", "restart", "lose"}).Draw(rt, "what") {
			case "hello":
				w.hello(h)
			case "claim":
				w.hello(h)
				time.Sleep(30 * time.Millisecond)
				w.claim(h, rapid.IntRange(0, 9).Draw(rt, "offer"), rapid.Bool().Draw(rt, "again"))
			case "beat":
				w.beat(h)
			case "end":
				if len(h.holds) > 0 {
					held := h.holds[0]
					h.holds, h.stale = h.holds[1:], append(h.stale, held)
					w.finish(held)
				}
			case "late":
				for _, held := range h.stale {
					w.finish(held)
				}
			case "pass": // half of a lease and more
				w.offset.Add(int64(600 * time.Millisecond))
				time.Sleep(150 * time.Millisecond)
			case "jump": // this process did not run
				w.offset.Add(int64(time.Minute))
				time.Sleep(150 * time.Millisecond)
			case "restart":
				w.end()
				w.begin()
				time.Sleep(50 * time.Millisecond)
			case "lose":
				w.lane.lose()
			}
		}
		// Two workers that do their work bring everything to its end.
		for begun := time.Now(); w.completed() < items; {
			if time.Since(begun) > 30*time.Second {
				rt.Fatalf("%d of %d items are done", w.completed(), items)
			}
			for _, h := range w.hands {
				w.beat(h)
				w.claim(h, 0, false)
				for _, held := range h.holds {
					w.finish(held)
				}
				h.holds = nil
			}
			time.Sleep(50 * time.Millisecond)
		}
		w.end()
		w.lawful(items)
	})
}

// completed counts the items whose step is done.
func (w *lessees) completed() int {
	return strings.Count(git(w.t, w.root, "log", "--format=%s"), "derive: completed")
}

// lawful reads the history.
func (w *lessees) lawful(items int) {
	current, done := map[string]string{}, map[string]string{}
	format := "--format=%(trailers:key=Bagpipe-Item,valueonly,separator=)|%(trailers:key=Bagpipe-Step,valueonly,separator=)|%(trailers:key=Bagpipe-To,valueonly,separator=)|%(trailers:key=Bagpipe-Attempt,valueonly,separator=)"
	for line := range strings.Lines(git(w.t, w.root, "log", "--reverse", format)) {
		word := strings.Split(strings.TrimSpace(line), "|")
		if len(word) != 4 || word[1] != "derive" {
			continue
		}
		switch word[2] {
		case "in-progress":
			current[word[0]] = word[3]
		case "completed":
			if done[word[0]] != "" || current[word[0]] != word[3] {
				w.rt.Fatalf("item %s: attempt %s was completed; current was %s, completed before %q", word[0], word[3], current[word[0]], done[word[0]])
			}
			done[word[0]] = word[3]
		}
	}
	if len(done) != items {
		w.rt.Fatalf("%d items were completed, not %d", len(done), items)
	}
	for _, held := range w.took {
		if done[string(held.Item)] != held.Attempt {
			w.rt.Fatalf("the end of attempt %s of item %s was acknowledged, and %q is in the history", held.Attempt, held.Item, done[string(held.Item)])
		}
	}
}
