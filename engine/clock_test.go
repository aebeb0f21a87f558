package engine_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/state"

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
	_, err = e.Run(p.ctx, engine.RunOptions{Jobs: 1})
	p.must(err)
	data, err := os.ReadFile(filepath.Join(p.root, ".bagpipe", "engines", string(o.ID)))
	p.must(err)
	since := gjson.GetBytes(data, "since").Str
	if want := fine.Format(time.RFC3339Nano); since != want {
		t.Errorf("since %q, want %q", since, want)
	}
}
