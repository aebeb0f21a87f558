package engine_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/state"
	"bagpipe/steps"

	"github.com/tidwall/gjson"
)

// What an attempt took is not below nothing when the clock is set back.
func TestAnAttemptWhileTheClockIsSetBack(t *testing.T) {
	p := newPolicy(t, "  - name: read\n    robot: trial\n", 1)
	p.says = func(string, int) error { p.clock.seconds.Add(-3600); return nil }
	if s := p.run(); s.Steps[state.Completed] != 1 {
		t.Fatalf("%+v", s)
	}
	files, err := filepath.Glob(filepath.Join(p.root, "items/*/*/*/*/*/execution.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	p.must(err)
	for _, a := range gjson.GetBytes(data, `workflows.flow\.1.steps.read.attempts`).Map() {
		if took := a.Get("elapsed").Num; took < 0 {
			t.Errorf("took %g s", took)
		}
	}
}

// Whether other engines live is told by a clock that goes on evenly: Options.Now as it
// is, with its monotonic reading, not cut to milliseconds. The engine's file shows it.
func TestLivenessIsToldByTheMonotonicClock(t *testing.T) {
	p := newPolicy(t, "  - name: read\n    robot: trial\n", 0)
	o := p.options()
	fine := p.clock.now().Add(123_456_789)
	o.Now = func() time.Time { return fine }
	e, err := engine.Open(p.ctx, p.root, o)
	p.must(err)
	defer func() { p.must(e.Close()) }()
	_, err = e.Run(p.ctx, engine.RunOptions{Parallel: 1})
	p.must(err)
	data, err := os.ReadFile(filepath.Join(p.root, ".bagpipe", "engines", string(o.ID)))
	p.must(err)
	since := gjson.GetBytes(data, "since").Str
	if want := fine.Format(time.RFC3339Nano); since != want {
		t.Errorf("since %q, want %q", since, want)
	}
}

// A threshold works on where the clock was set back after its step was enabled: what
// fails then is counted, and what an attempt took is what it took.
func TestAThresholdWhileTheClockIsSetBack(t *testing.T) {
	p := newPolicy(t, "  - name: read\n    robot: trial\n    threshold: {count: 2, window: 0, action: disable}\n", 12)
	p.says = func(string, int) error { return steps.ContentFailure("broken") }
	p.run()
	p.setBackAndEnable(-3600)
	before := p.all()
	p.run()
	if s := p.control(); s.Get("status").Str != "disabled" || p.all() != before+2 {
		t.Fatalf("%d calls after the step was enabled, want 2; it is %s", p.all()-before, s.Raw)
	}
	// It is so for an engine that comes later, which has the record alone.
	p.setBackAndEnable(-3600)
	before = p.all()
	p.says = func(string, int) error { p.clock.seconds.Add(-50); return steps.ContentFailure("broken") }
	p.run()
	if p.all() != before+2 {
		t.Errorf("%d calls, want 2", p.all()-before)
	}
}

// What was written by a clock that was ahead does not count again once it is set right
// and the step is enabled.
func TestAThresholdForgivesWhatAClockAheadWrote(t *testing.T) {
	p := newPolicy(t, "  - name: read\n    robot: trial\n    threshold: {count: 2, window: 0, action: disable}\n", 5)
	p.says = func(string, int) error { return steps.ContentFailure("broken") }
	p.clock.seconds.Add(86400)
	p.run()
	p.clock.seconds.Add(-86400)
	p.says = nil
	p.do(func(e *engine.Engine) {
		p.must(e.Index.Load(p.ctx))
		_, err := e.Act.SetStep(p.ctx, state.Ref{Workflow: "flow", Step: "read"}, state.StepEnabled, "")
		p.must(err)
	})
	if s := p.run(); s.Steps[state.Completed] != 3 || p.control().Get("status").Str == "disabled" {
		t.Errorf("%+v; %s", s.Steps, p.control().Raw)
	}
}

// setBackAndEnable enables the step, and sets the clock back.
func (p *policy) setBackAndEnable(by int64) {
	p.t.Helper()
	if s := p.control().Get("status").Str; s != "disabled" {
		p.t.Fatalf("the step is %q, want it disabled", s)
	}
	p.do(func(e *engine.Engine) {
		p.must(e.Index.Load(p.ctx))
		_, err := e.Act.SetStep(p.ctx, state.Ref{Workflow: "flow", Step: "read"}, state.StepEnabled, "")
		p.must(err)
	})
	p.clock.seconds.Add(by)
}
