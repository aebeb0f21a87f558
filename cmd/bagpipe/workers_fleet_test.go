package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bagpipe/engine/remote"
	"bagpipe/engine/remote/bus"
	"bagpipe/engine/worker"
	"bagpipe/layout"
	"bagpipe/steps"

	"github.com/tidwall/gjson"
)

// How large the fleet of TestFiguresOfWorkers is.
var (
	benchWorkers = flag.Int("workers", 1000, "how many workers are connected at once")
	benchSlots   = flag.Int("slots", 10, "how many slots each of them has")
)

// carriedHere is the worker's side of the bus as a worker of this process wants it.
type carriedHere struct{ *bus.Worker }

func (c carriedHere) Pull(ctx context.Context, class string, wait time.Duration) (worker.Pulled, bool, error) {
	return c.Worker.Pull(ctx, class, wait)
}

// crowd starts workers in this process, each with a key and connections of its own, and waits until all are ready.
func (f *fleet) crowd(n, slots int) {
	f.t.Helper()
	drain := make(chan struct{})
	var working sync.WaitGroup
	f.t.Cleanup(func() { close(drain); working.Wait() })
	quiet, build := slog.New(slog.DiscardHandler), f.status().Get("build").String()
	for i := range n {
		name := layout.Name(fmt.Sprintf("crowd-%d", i))
		key, err := remote.Invite(f.dir, remote.Key{Name: name, URLs: []string{fmt.Sprintf("nats://127.0.0.1:%d", f.port)}}, time.Now())
		f.must(err)
		config, err := worker.ParseConfig("worker.yaml", fmt.Appendf(nil, "schema: 1\nslots: %d\nfolder: %s\nbytes: transfer\nrobots:\n  - builtin: noop\n", slots, filepath.Join(f.top, "crowd", string(name))), steps.Builtins())
		f.must(err)
		server, err := key.ServerTLS()
		f.must(err)
		link, err := bus.Dial(bus.DialOptions{Outside: bus.Outside{URLs: key.URLs, Seed: key.Seed, TLS: server}, Name: name, Changed: func(string) {}})
		f.must(err)
		id, err := layout.NewEngineID(rand.Reader)
		f.must(err)
		w, err := worker.New(worker.Options{Config: config, Key: key, Link: carriedHere{link}, Engine: id, Build: build, Host: "crowd", Builtins: steps.Builtins(),
			Log: quiet, Say: func(string) {}, Now: time.Now})
		f.must(err)
		working.Go(func() {
			defer link.Close()
			if err := w.Run(context.WithoutCancel(f.t.Context()), drain); err != nil {
				f.t.Errorf("worker %s: %v", name, err)
			}
		})
	}
	f.until("all workers", func() bool { return len(f.status().Get(`workers.#(state=="ready")#`).Array()) == n })
}

// figuresOfFleets are how many attempts run at once where a thousand workers are connected, and what they cost; none may be lost.
func figuresOfFleets(t *testing.T) {
	f := newFleetWith(t, "30s", "  - name: derive\n    robot: noop\n    with: {sleep: 2m}\n", "{far/derive: {only: true}}")
	begun := time.Now()
	f.crowd(*benchWorkers, *benchSlots)
	t.Logf("%d workers of %d slots are connected after %s", *benchWorkers, *benchSlots, time.Since(begun).Round(100*time.Millisecond))
	items := *benchWorkers * *benchSlots
	f.ok("step", "disable", "far/derive", "-m", "not yet")
	f.addMany("crowd", items)
	before, _ := f.engine.spent()
	begun = time.Now()
	f.ok("step", "enable", "far/derive")
	most := 0
	running := func() (n int) {
		f.status().Get("workers.#.running.#").ForEach(func(_, of gjson.Result) bool { n += int(of.Int()); return true })
		most = max(most, n)
		return n
	}
	ended := f.counter(endedFar)
	f.until("all attempts at once", func() bool {
		time.Sleep(200 * time.Millisecond) // each look costs the engine more than many steps
		return running() == items || ended() > 0
	})
	all := time.Since(begun)
	claimed, memory := f.engine.spent()
	const rest = 20 * time.Second
	time.Sleep(rest)
	beaten, _ := f.engine.spent()
	f.until("their ends", func() bool {
		time.Sleep(time.Second)
		return ended() >= items
	})
	spent, _ := f.engine.spent()
	log := f.git("log", "--format=%s")
	t.Logf("%d of %d attempts ran at once, after %s; %s of processor for each in the engine, %s until they ran; %.0f %% of a core while they ran; %d MB in the engine; %d begun, %d completed",
		most, items, all.Round(100*time.Millisecond), ((spent - before) / time.Duration(items)).Round(10*time.Microsecond), ((claimed - before) / time.Duration(items)).Round(10*time.Microsecond), 100*(beaten-claimed).Seconds()/rest.Seconds(), memory>>20,
		strings.Count(log, "derive: in-progress"), strings.Count(log, "derive: completed"))
	if begun, done := strings.Count(log, "derive: in-progress"), strings.Count(log, "derive: completed"); begun != items || done != items {
		t.Errorf("%d attempts began and %d completed of %d", begun, done, items)
	}
	f.engine.kill()
}
