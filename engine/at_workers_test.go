package engine_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/intake"
	"bagpipe/engine/remote"
	"bagpipe/engine/remote/bus"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/state"
	"bagpipe/engine/worker"
	"bagpipe/layout"
	"bagpipe/steps"
)

// served is a policy whose placed steps workers of this process do, over NATS.
type served struct {
	*policy
	e     *engine.Engine
	far   *remote.Remote
	url   string
	ended chan struct{} // closed when the run has ended
	stop  chan struct{} // closed: workers are drained
	group sync.WaitGroup
}

// place has steps placed on workers, and puts new settings for old, with an engine's clock that is this machine's: leases are
// judged by it.
func (p *policy) place(steps string, oldNew ...string) {
	p.t.Helper()
	p.real = true
	file := filepath.Join(p.root, layout.SettingsFile)
	before, err := os.ReadFile(file)
	p.must(err)
	p.must(os.WriteFile(file, []byte(strings.NewReplacer(oldNew...).Replace(string(before))+"\nworkers:\n  steps: "+steps+"\n"), 0o644))
}

// serve runs an engine that watches and lets workers in, until during has returned.
func (p *policy) serve(parallel int, during func(*served)) (s engine.Summary) {
	p.t.Helper()
	p.do(func(e *engine.Engine) {
		service, err := remote.Listen(remote.ServiceOptions{Root: p.root, Listen: "127.0.0.1:0", ID: e.ID(), Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		p.must(err)
		defer service.Close()
		v := &served{policy: p, e: e, url: service.Place.URL, ended: make(chan struct{}), stop: make(chan struct{})}
		v.far, err = e.Workers(service.Place, func(string) {})
		p.must(err)
		if len(e.Settings.Current().Settings.Workers.Steps) == 0 {
			p.t.Fatal("the settings were refused")
		}
		drain := make(chan struct{})
		go func() {
			defer close(v.ended)
			var err error
			if s, err = e.Run(p.ctx, engine.RunOptions{Parallel: parallel, Watch: true, Workers: v.far, Drain: drain}); err != nil {
				p.t.Error(err)
			}
		}()
		defer func() { close(v.stop); v.group.Wait(); close(drain); <-v.ended }()
		v.await("the index", func() bool { return e.Index.Loaded() != nil })
		during(v)
	})
	return s
}

// over reports whether the run has ended by itself.
func (v *served) over() bool {
	select {
	case <-v.ended:
		return true
	default:
		return false
	}
}

// carried is a worker's side of the bus as a worker wants it.
type carried struct{ *bus.Worker }

func (c carried) Pull(ctx context.Context, class string, wait time.Duration) (worker.Pulled, bool, error) {
	return c.Worker.Pull(ctx, class, wait)
}

// worker begins a worker that offers the robot trial; more are lines of its worker.yaml. err is told how it ended.
func (v *served) worker(name layout.Name, slots int, more string) (ended <-chan error) {
	v.t.Helper()
	key, err := remote.Invite(v.root, remote.Key{Name: name, URLs: []string{v.url}}, time.Now())
	v.must(err)
	robots := v.options().Robots
	config, err := worker.ParseConfig("worker.yaml", fmt.Appendf(nil, "schema: 1\nslots: %d\nfolder: %s\nbytes: transfer\nrobots: [{builtin: trial}]\n%s", slots, filepath.Join(v.t.TempDir(), string(name)), more), robots)
	v.must(err)
	server, err := key.ServerTLS()
	v.must(err)
	link, err := bus.Dial(bus.DialOptions{Outside: bus.Outside{URLs: key.URLs, Seed: key.Seed, TLS: server}, Name: name, Changed: func(string) {}})
	v.must(err)
	id, err := layout.NewEngineID(rand.Reader)
	v.must(err)
	w, err := worker.New(worker.Options{Config: config, Key: key, Link: carried{link}, Engine: id, Host: "far", Builtins: robots, Log: slog.New(slog.DiscardHandler), Say: func(string) {}, Now: time.Now})
	v.must(err)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(v.ctx))
	go func() { // it would wait for an engine to tell its ends to
		<-v.ended
		cancel()
	}()
	v.group.Go(func() {
		defer link.Close()
		done <- w.Run(ctx, v.stop)
	})
	return done
}

func (v *served) await(what string, is func() bool) {
	v.t.Helper()
	for n := 0; !is(); time.Sleep(10 * time.Millisecond) {
		if n++; n > 2000 { // looks, not time: the machine may have stood still
			v.t.Fatalf("%s did not come: %s; calls %v, control %s", what, v.standing(), v.all(), v.control().Raw)
		}
	}
}

// standing is how much is on offer, and claimed.
func (v *served) standing() string {
	data, err := wire.Encode(wire.Control{Head: wire.Now(), Verb: wire.Verify})
	v.must(err)
	var told wire.Controlled
	v.must(wire.Decode(v.far.Answer(wire.Operator, wire.VerbControl, data), &told))
	return told.Text + told.Refused
}

// rests reports whether nothing is on offer and nothing claimed.
func (v *served) rests() bool {
	s := v.standing()
	return strings.Contains(s, ": 0 on offer") && strings.HasSuffix(s, ", 0 claimed")
}

// count counts the items whose step stands so.
func (v *served) count(step layout.Name, status state.Status) int {
	v.t.Helper()
	seen, err := v.e.Ask.Steps(ask.Filter{Step: step, Status: status})
	v.must(err)
	return len(seen)
}

// called counts the calls for one item.
func (p *policy) called(label string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[label]
}

// item finds an item by its label.
func (v *served) item(label string) layout.ItemID {
	v.t.Helper()
	for it := range v.e.Index.Loaded().Items() {
		if it.Label == label {
			return it.ID
		}
	}
	v.t.Fatalf("no item %s", label)
	return ""
}

// wherever calls f with a workspace of these steps and items whose work is done by this machine, and with one
// of which a worker does that is placed.
func wherever(t *testing.T, placed, steps string, items int, f func(t *testing.T, p *policy, work func(until func(*served) bool) engine.Summary)) {
	t.Helper()
	t.Run("here", func(t *testing.T) {
		t.Parallel()
		p := newPolicy(t, steps, items)
		f(t, p, func(func(*served) bool) engine.Summary { return p.ticking() })
	})
	t.Run("there", func(t *testing.T) {
		t.Parallel()
		p := newPolicy(t, steps, items)
		p.place(placed)
		f(t, p, func(until func(*served) bool) engine.Summary {
			return p.serve(1, func(v *served) {
				v.worker("w", 1, "")
				v.await("the end", func() bool { return v.over() || until(v) && v.rests() })
			})
		})
	})
}

// What an attempt was given is kept, each time, and is the same wherever it was made.
func TestInputsAreKeptWherever(t *testing.T) {
	t.Parallel()
	const flow = "  - name: read\n    robot: trial\n    keepInputs: true\n    retries: 1\n    backoff: {first: 1ms, most: 1ms}\n  - name: after\n    robot: noop\n"
	kept := map[string]string{}
	wherever(t, "{flow/read: {only: true}}", flow, 2, func(t *testing.T, p *policy, work func(func(*served) bool) engine.Summary) {
		p.says = func(label string, call int) error {
			if label == "item-1" && call == 1 {
				return steps.SystemFailure("no luck")
			}
			return nil
		}
		work(func(v *served) bool { return v.count("after", state.Completed) == 2 })
		kept[filepath.Base(t.Name())] = p.kept()
	})
	t.Cleanup(func() { // the two run side by side
		if here, there := kept["here"], kept["there"]; here != there || strings.Count(here, "call.json") != 3 {
			t.Errorf("kept here:\n%s\nkept there:\n%s", here, there)
		}
	})
}

// kept words the folders of kept inputs: what differs between two runs is taken out.
func (p *policy) kept() string {
	p.t.Helper()
	folders, err := filepath.Glob(filepath.Join(p.root, layout.ItemsDir, "*/*/*/*/*/inputs/*"))
	p.must(err)
	var all []string
	for _, dir := range folders {
		text := ""
		p.must(fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(filepath.Join(dir, name))
			text += name + "\n" + string(data)
			return err
		}))
		for pattern, by := range map[string]string{`\d{4}-\d\d-\d\dT[0-9:.]+Z`: "TIME", `(\d+)-[0-9a-f]{8}`: "$1-ENGINE", `\b[0-9a-f]{15}\b`: "ITEM",
			`"(elapsed|started|cpu)": [^\n]*\n`: "", `"(runner|agent|by)": "[^"]*"`: `"$1": "WHO"`, `sha256:[0-9a-f]{64}`: "DIGEST"} {
			text = regexp.MustCompile(pattern).ReplaceAllString(text, by)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// A step of a held item is not begun that is on offer already; one that a worker has comes to its end, and nothing of the item begins
// after it. Both go on once they are released, and nothing is done twice.
func TestHoldsCountAtWorkers(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, "  - name: read\n    robot: trial\n  - name: after\n    robot: noop\n", 2)
	p.place("{flow/read: {only: true}, flow/after: {}}")
	begun, goOn := make(chan string, 10), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	p.works = func(c *steps.Call) {
		begun <- c.Label
		<-goOn
	}
	p.serve(1, func(v *served) {
		defer release()
		v.worker("w", 1, "")
		first := <-begun
		second := map[string]string{"item-1": "item-2", "item-2": "item-1"}[first]
		v.await("the other on offer", func() bool { return strings.Contains(v.standing(), ": 1 on offer") })
		for _, label := range []string{first, second} {
			p.must(v.e.Act.Hold(p.ctx, v.item(label), "rights?"))
		}
		release()
		v.await("the end of what was begun", func() bool { return v.count("read", state.Completed) == 1 && v.rests() })
		if n := v.called(second); n != 0 {
			t.Errorf("a held item's step was begun %d times", n)
		}
		if n := v.count("after", state.Waiting); n != 2 {
			t.Errorf("after stands waiting at %d items, want both", n)
		}
		for _, label := range []string{first, second} {
			p.must(v.e.Act.Release(p.ctx, v.item(label), ""))
		}
		v.await("both", func() bool { return v.count("after", state.Completed) == 2 })
		if n := v.called(first) + v.called(second); n != 2 {
			t.Errorf("two steps were done %d times", n)
		}
	})
	git(t, p.root, "fsck", "--strict", "--no-dangling")
}

// The limits of a step and of the items under way hold over this machine and workers together.
func TestLimitsHoldHereAndAtWorkers(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{"step": {"collections:\n", "steps: {flow/read: {limit: 2}}\ncollections:\n"}, "items": {"default: {}", "default: {inFlight: 2}"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPolicy(t, "  - name: read\n    robot: trial\n  - name: after\n    robot: trial\n", 16)
			p.place("{flow/read: {}}", settings...)
			var mu sync.Mutex // guards what follows
			at, sides, under, most := map[layout.Name]int{}, map[bool]int{}, map[string]bool{}, 0
			p.works = func(c *steps.Call) {
				mu.Lock()
				at[c.Step]++
				under[c.Label] = true
				sides[c.Step == "read" && strings.HasPrefix(c.Scratch, p.root)]++
				if name == "step" {
					most = max(most, at["read"])
				} else {
					most = max(most, len(under))
				}
				mu.Unlock()
				time.Sleep(20 * time.Millisecond) // so that others have the time to begin
				mu.Lock()
				defer mu.Unlock()
				if at[c.Step]--; c.Step == "after" {
					delete(under, c.Label)
				}
			}
			p.serve(4, func(v *served) {
				v.worker("w", 1, "")
				v.await("all", func() bool { return v.count("after", state.Completed) == 16 })
			})
			if most != 2 {
				t.Errorf("%d were under way at once, want 2", most)
			}
			if sides[true] == 0 || sides[true] == 16 {
				t.Errorf("%d of 16 were read here", sides[true])
			}
		})
	}
}

// Workers are handed steps in the order of the lanes, also those that are put on offer together.
func TestLanesCountAtWorkers(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, "  - name: read\n    robot: trial\n", 0)
	p.place("{flow/read: {only: true}}")
	drop := filepath.Join(t.TempDir(), "a.txt")
	p.must(os.WriteFile(drop, []byte("a"), 0o644))
	var want []string
	p.do(func(e *engine.Engine) {
		for _, lane := range []string{"normal", "urgent"} {
			var added []string
			for i := range 8 {
				added = append(added, fmt.Sprintf("%s-%d", lane, i))
				_, err := e.Intake.Add(p.ctx, drop, intake.AddOptions{Workflow: "flow", Label: added[i], Lane: lane})
				p.must(err)
				time.Sleep(2 * time.Millisecond) // the oldest is the first
			}
			want = append(added, want...)
		}
	})
	var got []string // one slot: one after the other
	p.works = func(c *steps.Call) { got = append(got, c.Label) }
	p.serve(1, func(v *served) {
		v.worker("w", 1, "")
		v.await("all", func() bool { return v.count("read", state.Completed) == 16 })
	})
	if !slices.Equal(got, want) {
		t.Errorf("done in this order:\n%v\nwant:\n%v", got, want)
	}
}

// A worker whose robots fail leaves with its reason: what the content is to blame for, and what asks to be called later, is no failure.
func TestAWorkerWhoseRobotsFailLeaves(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, "  - name: read\n    robot: trial\n", 12)
	p.place("{flow/read: {only: true}}")
	n := 0
	p.says = func(string, int) error {
		n++
		switch n {
		case 1, 5, 7: // the first is not among the last four when the second comes
			return steps.SystemFailure("off")
		case 2, 3, 6:
			return steps.ContentFailure("torn")
		}
		return nil
	}
	p.serve(1, func(v *served) {
		select {
		case err := <-v.worker("w", 1, "errors: {count: 2, window: 4}\n"):
			if !errors.Is(err, worker.ErrFailing) || !strings.Contains(err.Error(), "2 of the last 4") {
				t.Errorf("the worker ended: %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the worker stays: %d calls", p.all())
		}
		if calls := p.all(); calls != 7 {
			t.Errorf("%d calls, want 7", calls)
		}
		v.await("its last end", func() bool { return v.count("read", state.Failed) == 6 && v.count("read", state.InProgress) == 0 })
	})
}
