package queue

import (
	"testing"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// TestTimesOfAllAttempts: an attempt counts whatever came after it: one that failed
// and is tried again by itself, or by a person, waited from when it could start.
func TestTimesOfAllAttempts(t *testing.T) {
	d, err := state.ParseDefinition("w.yaml", []byte("schema: 1\nname: w\nsteps:\n  - name: register\n  - name: a\n    robot: noop\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	id, run := layout.ItemIDOf(77), "w.1"
	x := &state.Execution{Item: id}
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	key := func(n int) layout.AttemptKey { return layout.AttemptKey{N: n, Engine: eng} }
	apply := func(e state.Event) {
		t.Helper()
		if _, err := state.Apply(x, d, e); err != nil {
			t.Fatal(err)
		}
	}
	try := func(n, claimed, ended int, s state.Status, again time.Time) {
		t.Helper()
		apply(state.Claim{Workflow: run, Step: "a", Attempt: key(n), At: at(claimed), Runner: "h:1"})
		apply(state.End{Workflow: run, Step: "a", Attempt: key(n), Started: at(claimed), At: at(ended), State: s, Kind: "system", RetryAt: again})
	}
	apply(state.Start{Workflow: run, Attempt: key(1), At: at(0)})
	try(1, 10, 15, state.Failed, at(100)) // waited 10, ran 5
	try(2, 103, 104, state.Failed, time.Time{})
	apply(state.Retry{Key: "retry", Workflow: run, Step: "a", At: at(1000), By: "p"})
	try(3, 1007, 1009, state.Completed, time.Time{}) // waited 7 from the retry on, ran 2
	index := New()
	index.Put(SummariseInto(&Item{}, x, layout.Manifest{Item: id, Created: at(0)}, func(string) *state.Definition { return d }, at(1010)))
	for _, now := range []struct{ at, hour, day int }{{1010, 1, 1}, {5000, 0, 1}, {100_000, 0, 0}} {
		all := index.Times(at(now.at))
		a := all[1]
		if a.Step != "a" || a.Attempts != 3 || a.FailedAttempts != 2 || a.Completed != 1 || a.LastHour != now.hour || a.LastDay != now.day {
			t.Errorf("at %d: %+v", now.at, a)
		}
		if a.Waited.N != 3 || a.Waited.Median != 7*time.Second || a.Waited.P95 != 10*time.Second {
			t.Errorf("waited %+v, want 3, 7 and 10 s", a.Waited)
		}
		if a.Ran.N != 3 || a.Ran.Median != 2*time.Second || a.Ran.P95 != 5*time.Second {
			t.Errorf("ran %+v, want 1, 2 and 5 s", a.Ran)
		}
	}
	apply(state.Reset{Key: func() (layout.IntentKey, error) { return "reset", nil }, Workflow: run, Step: "a", At: at(1020), By: "p"})
	index.Put(SummariseInto(&Item{}, x, layout.Manifest{Item: id, Created: at(0)}, func(string) *state.Definition { return d }, at(1030)))
	if a := index.Times(at(1030))[1]; a.Waiting != 1 || a.Completed != 0 || a.LastHour != 1 || a.Ran.N != 3 {
		t.Errorf("after a reset: %+v", a)
	}
}
