package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/intake"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"

	"github.com/tidwall/gjson"
)

// policy is a workspace whose robot does as the test says, and whose clock stands
// still until the test moves it.
type policy struct {
	t     *testing.T
	ctx   context.Context
	root  string
	clock *fixedClock

	real  bool              // the clock is that of this machine
	works func(*steps.Call) // side by side; nil: nothing

	mu    sync.Mutex // guards the rest
	calls map[string]int
	says  func(label string, call int) error
	rand  int64
}

func newPolicy(t *testing.T, yaml string, items int) *policy {
	t.Helper()
	p := &policy{t: t, ctx: context.Background(), root: filepath.Join(t.TempDir(), "w"), clock: &fixedClock{}, calls: map[string]int{}}
	p.must(engine.Init(p.ctx, p.root, p.options()))
	p.must(os.WriteFile(filepath.Join(p.root, "workflows", "flow.yaml"), []byte("schema: 1\nname: flow\nsteps:\n  - name: register\n"+yaml), 0o644))
	drop := filepath.Join(t.TempDir(), "a.txt")
	p.must(os.WriteFile(drop, []byte("a"), 0o644))
	p.do(func(e *engine.Engine) {
		for i := range items {
			p.clock.seconds.Add(1)
			_, err := e.Intake.Add(p.ctx, drop, intake.AddOptions{Workflow: "flow", Label: fmt.Sprintf("item-%d", i+1)})
			p.must(err)
		}
	})
	return p
}

func (p *policy) options() engine.Options {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rand++
	o := fixedOptions(p.clock)
	if p.real {
		o.Now = time.Now
	}
	o.ID = layout.EngineID(fmt.Sprintf("%08x", p.rand))
	o.Host.PID = os.Getpid()
	o.Robots = map[layout.Name]steps.Builtin{"trial": {Robot: p}}
	for name, b := range steps.Builtins() {
		o.Robots[name] = b
	}
	return o
}

// Run is the robot.
func (p *policy) Run(_ context.Context, c *steps.Call) (steps.Result, error) {
	if p.works != nil {
		p.works(c)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[c.Label]++
	p.clock.seconds.Add(1) // so that no two end at the same time
	if p.says == nil {
		return steps.Result{}, nil
	}
	return steps.Result{}, p.says(c.Label, p.calls[c.Label])
}

func (p *policy) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *policy) do(f func(*engine.Engine)) {
	p.t.Helper()
	e, err := engine.Open(p.ctx, p.root, p.options())
	p.must(err)
	defer func() { p.must(e.Close()) }()
	f(e)
}

func (p *policy) run() (s engine.Summary) {
	p.t.Helper()
	p.do(func(e *engine.Engine) {
		var err error
		s, err = e.Run(p.ctx, engine.RunOptions{Parallel: 1})
		p.must(err)
	})
	return s
}

func (p *policy) control() gjson.Result {
	data, err := os.ReadFile(filepath.Join(p.root, layout.ControlsFile))
	if err != nil {
		return gjson.Result{}
	}
	return gjson.GetBytes(data, "steps.flow/read")
}

func (p *policy) all() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		n += c
	}
	return n
}

// Section 2.5 of the seed: "When errors occur in delegates, retry is attempted (if
// configured), some number of times. If that fails, error counts are incremented
// and thresholds examined for Terminate/Disable actions. If not reached, or if the
// action is Disable, Continue is attempted (if configured); if Continue fails, the
// error is not recovered." 3.11: without any of it, no retry, no time-out, no
// continuing, errors ignored.
func TestErrorPolicy(t *testing.T) {
	broken := func(string, int) error { return steps.SystemFailure("the scanner is off") }
	threshold := func(count, window int, action string) string {
		return fmt.Sprintf("    threshold: {count: %d, window: %d, action: %s}\n", count, window, action)
	}
	const some = -1
	const after = "  - name: after\n    robot: noop\n"
	for _, c := range []struct {
		name    string
		policy  string
		says    func(string, int) error
		calls   int // of five items; some: as it comes
		control string
		after   int // items the workflow went on with
		stopped bool
	}{
		{"maxRetries is set to 0", "", broken, 5, "", 0, false},
		{"errors are ignored", threshold(0, 0, "terminate"), broken, 5, "", 0, false},
		{"retry is done some number of times, per call", "    retries: 2\n    backoff: {first: 1ms, most: 1ms}\n", broken, 15, "", 0, false},
		{"a retry that does well is no error", "    retries: 2\n    backoff: {first: 1ms, most: 1ms}\n" + threshold(1, 0, "disable"),
			func(_ string, call int) error {
				if call < 3 {
					return steps.SystemFailure("not yet")
				}
				return nil
			}, 15, "", 5, false},
		{"if that fails, error counts are incremented", "    retries: 1\n    backoff: {first: 1ms, most: 1ms}\n" + threshold(2, 0, "disable"), broken, some, "disabled", 0, false},
		{"the threshold has been reached: the delegate is disabled", threshold(3, 5, "disable"), broken, 3, "disabled", 0, false},
		{"or the component terminated", threshold(3, 5, "terminate"), broken, 3, "stopped", 0, true},
		{"if not reached, continue is attempted", "    continueOnFailure: true\n" + threshold(9, 9, "disable"), broken, 5, "", 5, false},
		{"or where the program for errors says so", "    continueOnFailure: ask\n    onError: [/bin/echo, continue]\n", broken, 5, "", 5, false},
		{"or if the action is disable", "    continueOnFailure: true\n" + threshold(3, 3, "disable"), broken, 3, "disabled", 3, false},
		{"on terminate the error is not recovered further", "    continueOnFailure: true\n" + threshold(3, 3, "terminate"), broken, 3, "stopped", some, true},
		{"content failures count too, and are not retried", "    retries: 5\n" + threshold(2, 0, "disable"),
			func(string, int) error { return steps.ContentFailure("torn") }, 2, "disabled", 0, false},
		{"what asks to be called later is no error", threshold(1, 0, "disable"),
			func(_ string, call int) error {
				if call == 1 {
					return &steps.Later{After: time.Millisecond, Reason: "busy"}
				}
				return nil
			}, 10, "", 5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			wherever(t, "{flow/read: {only: true}}", "  - name: read\n    robot: trial\n"+c.policy+after, 5, func(t *testing.T, p *policy, work func(func(*served) bool) engine.Summary) {
				p.says = c.says
				s := work(func(v *served) bool {
					return (c.calls == some || p.all() >= c.calls) && p.control().Get("status").String() == c.control && (c.after == some || v.count("after", state.Completed) == c.after)
				})
				most := c.calls
				if p.real && strings.Contains(c.policy, "threshold") {
					most++ // a worker tells an end and claims the next step side by side
				}
				if n := p.all(); c.calls != some && (n < c.calls || n > most) {
					t.Errorf("the robot was called %d times, want %d: %v", p.all(), c.calls, p.calls)
				}
				if got := p.control().Get("status").String(); got != c.control {
					t.Errorf("the step is %q, want %q", got, c.control)
				}
				if n := p.after(); c.after != some && n != c.after {
					t.Errorf("%d items went on, want %d", p.after(), c.after)
				}
				if (len(s.Stopped) > 0) != c.stopped {
					t.Errorf("stopped by %v", s.Stopped)
				}
			})
		})
	}
}

// ticking is run with a clock that goes.
func (p *policy) ticking() engine.Summary {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
				p.clock.seconds.Add(1)
			}
		}
	})
	defer wg.Wait()
	defer close(done)
	return p.run()
}

// after counts the items whose second step is completed.
func (p *policy) after() (n int) {
	p.do(func(e *engine.Engine) {
		p.must(e.Index.Load(p.ctx))
		seen, err := e.Ask.Steps(ask.Filter{Step: "after", Status: state.Completed})
		p.must(err)
		n = len(seen)
	})
	return n
}

// Two engines on one workspace, each with failures of its own that together reach
// the threshold, disable the step once; neither begins anything of it afterwards.
func TestTwoEnginesAgreeOnAThreshold(t *testing.T) {
	p := newPolicy(t, "  - name: read\n    robot: trial\n    threshold: {count: 4, window: 0, action: disable}\n", 40)
	var meet sync.WaitGroup
	meet.Add(2)
	p.says = func(string, int) error { return steps.SystemFailure("off") }
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			e, err := engine.Open(p.ctx, p.root, p.options())
			meet.Done()
			meet.Wait()
			if err != nil {
				t.Error(err)
				return
			}
			_, err = e.Run(p.ctx, engine.RunOptions{Parallel: 2})
			if err := errors.Join(err, e.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := p.all(); n < 4 || n > 4+8 {
		t.Errorf("%d calls: more than the two engines had under way when the fourth failed", n)
	}
	if log := git(t, p.root, "log", "--format=%s", "--", layout.ControlsFile); log != "control: disabled flow/read\n" {
		t.Errorf("the controls' history:\n%s", log)
	}
	before := p.all()
	p.run()
	if p.all() != before {
		t.Error("a disabled step was tried")
	}
}

// Two engines try a disabled step after its cool-down: with one item, not two.
func TestTwoEnginesTryOneItem(t *testing.T) {
	p := newPolicy(t, "  - name: read\n    robot: trial\n    threshold: {count: 1, window: 0, action: disable}\n    coolDown: 10m\n", 20)
	p.says = func(string, int) error { return steps.SystemFailure("off") }
	p.run()
	if p.all() != 1 {
		t.Fatalf("%d calls", p.all())
	}
	p.clock.seconds.Add(660)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			e, err := engine.Open(p.ctx, p.root, p.options())
			if err != nil {
				t.Error(err)
				return
			}
			_, err = e.Run(p.ctx, engine.RunOptions{Parallel: 4})
			if err := errors.Join(err, e.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if p.all() != 2 {
		t.Errorf("%d calls, want the one that failed and one trial", p.all())
	}
	c := p.control()
	if c.Get("status").String() != "disabled" || c.Get("trial").Exists() || c.Get("until").Time().Before(p.clock.now().Add(9*time.Minute)) {
		t.Errorf("after the trial failed: %s", c.Raw)
	}
	p.says = nil
	p.clock.seconds.Add(660)
	if s := p.run(); s.Steps[state.Completed] != 18 || len(s.Off) != 0 {
		t.Errorf("after a trial that went well: %+v", s)
	}
}

// A trial whose item is held, or fails elsewhere, keeps nobody from being tried.
func TestATrialThatCannotGoOnIsTakenOver(t *testing.T) {
	p := newPolicy(t, "  - name: read\n    robot: trial\n    threshold: {count: 1, window: 0, action: disable}\n    coolDown: 10m\n", 5)
	p.says = func(string, int) error { return steps.SystemFailure("off") }
	p.run()
	p.clock.seconds.Add(660)
	p.says = func(string, int) error { return &steps.Later{After: time.Hour, Reason: "warming up"} }
	p.run()
	tried := p.control().Get("trial.item").String()
	if tried == "" {
		t.Fatalf("no trial: %s", p.control().Raw)
	}
	calls := p.all()
	p.run()
	if p.all() != calls {
		t.Error("another item was tried while the trial stands")
	}
	p.says = nil
	p.do(func(e *engine.Engine) { p.must(e.Act.Hold(p.ctx, layout.ItemID(tried), "rights?")) })
	if s := p.run(); s.Steps[state.Completed] != 3 {
		t.Errorf("%+v; %s", s, p.control().Raw)
	}
	if got := p.control().Get("status").String(); got != "enabled" {
		t.Errorf("the step is %s", got)
	}
}

// An engine that dies between a failure's commit and the threshold's leaves the
// latter to the next.
func TestAThresholdLeftByADeadEngine(t *testing.T) {
	p := newPolicy(t, "  - name: read\n    robot: trial\n    threshold: {count: 3, window: 0, action: terminate, per: workspace}\n", 6)
	p.says = func(string, int) error { return steps.SystemFailure("off") }
	p.run()
	// The branch as it was before the threshold's commit, which is the newest of
	// those that are not about items.
	commit := strings.TrimSpace(git(t, p.root, "log", "-1", "--format=%H", "--", layout.ControlsFile))
	copied := filepath.Join(t.TempDir(), "w")
	p.must(os.CopyFS(copied, os.DirFS(p.root)))
	git(t, copied, "update-ref", "refs/heads/main", commit+"^")
	p.must(os.RemoveAll(filepath.Join(copied, layout.StateDir)))
	p.must(os.RemoveAll(filepath.Join(copied, "controls")))
	p.root = copied
	calls := p.all()
	if s := p.run(); len(s.Stopped) != 1 || s.Stopped[0].Text != "it failed 3 times" {
		t.Errorf("stopped by %+v", s.Stopped)
	}
	if p.all() != calls {
		t.Error("a step was begun before the threshold was looked at")
	}
}

// A threshold with terminate stops every run on the workspace, also one that
// watches, and the next one goes on.
func TestAThresholdStopsAllRuns(t *testing.T) {
	p := newPolicy(t, "  - name: read\n    robot: trial\n    threshold: {count: 4, window: 0, action: terminate}\n", 40)
	p.says = func(string, int) error { return steps.SystemFailure("off") }
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			e, err := engine.Open(p.ctx, p.root, p.options())
			if err != nil {
				t.Error(err)
				return
			}
			s, err := e.Run(p.ctx, engine.RunOptions{Parallel: 1, Watch: true})
			if err := errors.Join(err, e.Close()); err != nil {
				t.Error(err)
			}
			if len(s.Stopped) != 1 || s.Stopped[0].Step != "flow/read" {
				t.Errorf("stopped by %+v", s.Stopped)
			}
		})
	}
	wg.Wait()
	if n := p.all(); n >= 40 {
		t.Errorf("%d calls", n)
	}
}
