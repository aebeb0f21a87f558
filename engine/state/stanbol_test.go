package state

import (
	"fmt"
	"testing"
	"time"

	"bagpipe/layout"
)

const stanbolYAML = `schema: 1
name: trial
steps:
  - name: register
  - name: required
    robot: noop
  - name: optional
    robot: noop
    optional: true
    requires: [register]
  - name: after
    robot: noop
    requires: [required, optional]
`

// TestStanbolStateRules holds the record to "Execution State Management" of the
// Stanbol Execution Metadata, sentence by sentence. A ChainExecution is a
// workflow here, an EngineExecution a step with its attempt, em:completed the
// time "ended".
func TestStanbolStateRules(t *testing.T) {
	d, err := ParseDefinition("trial.yaml", []byte(stanbolYAML), noopOnly)
	if err != nil {
		t.Fatal(err)
	}
	end := t0.Add(3 * time.Second) // as run ends attempts
	// do makes one attempt at a step end so.
	do := func(step layout.Name, e End) func(*Execution) { return func(x *Execution) { run(t, x, d, step, e) } }
	claim := func(step layout.Name) func(*Execution) {
		return func(x *Execution) {
			if _, err := Apply(x, d, Claim{Workflow: wf, Step: step, Attempt: layout.AttemptKey{N: 1, Engine: engineA}, At: t0.Add(time.Second)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		sentence string
		events   []func(*Execution)
		step     layout.Name
		want     Status // of the step
		started  bool   // the attempt has its start
		ended    bool   // and its end
		workflow Status
		closed   bool // the workflow has its end, which is that of the step
	}{
		{"All such 'em:Execution' instances MUST BE created with the 'em:ExecutionStatus' 'em:StatusSheduled'",
			nil, "required", Waiting, false, false, InProgress, false},
		{"Enhancement process starts: set the 'em:status' of the 'em:ChainExecution' to 'em:StatusInProgress'; set the 'em:started' to the current date time",
			nil, "register", Completed, true, true, InProgress, false},
		{"EnhancementEngine execution starts: set the 'em:status' of the 'em:EngineExecution' to 'em:StatusInProgress'; set the 'em:started' to the current date time",
			[]func(*Execution){claim("required")}, "required", InProgress, true, false, InProgress, false},
		{"EnhancementEngine completes: 'em:StatusCompleted'; set the 'em:completed' to the current date time",
			[]func(*Execution){do("required", End{State: Completed})}, "required", Completed, true, true, InProgress, false},
		{"Optional EnhancementEngine not available: 'em:StatusSkipped'; set both 'em:started' and 'em:completed' to the current date time",
			[]func(*Execution){do("optional", End{State: Failed, Unavailable: true, Message: "no ocr here"})}, "optional", Skipped, true, true, InProgress, false},
		{"Optional EnhancementEngine failed: 'em:StatusFailed'; set the 'em:completed' to the current date time",
			[]func(*Execution){do("optional", End{State: Failed})}, "optional", Failed, true, true, InProgress, false},
		{"Required EnhancementEngine failed: both the engine and the chain execution 'em:StatusFailed', with 'em:completed'",
			[]func(*Execution){do("required", End{State: Failed})}, "required", Failed, true, true, Failed, true},
		{"Required EnhancementEngine not available: the same",
			[]func(*Execution){do("required", End{State: Failed, Unavailable: true})}, "required", Failed, true, true, Failed, true},
		{"Enhancement process completes: 'em:status' of the 'em:ChainExecution' 'em:StatusCompleted', with 'em:completed'",
			[]func(*Execution){do("required", End{State: Completed}), do("optional", End{State: Failed}), do("after", End{State: Completed})},
			"after", Completed, true, true, Completed, true},
		{"Internal error: 'em:ChainExecution' to 'em:StatusFailed', with 'em:completed'; do not set any 'em:EngineExecution' to failed",
			[]func(*Execution){claim("required"), func(x *Execution) {
				if _, err := Apply(x, d, Internal{Key: "02-A", LostKey: "01-A", Workflow: wf, Step: "required",
					Attempt: layout.AttemptKey{N: 1, Engine: engineA}, At: end, By: "B", Text: "index out of range"}); err != nil {
					t.Fatal(err)
				}
			}}, "required", Waiting, true, false, Failed, true},
		{"Continuation: reset the status of 'em:Execution's that are in-progress to scheduled",
			[]func(*Execution){claim("required"), func(x *Execution) {
				if _, err := Apply(x, d, Lost{Key: "01-A", Workflow: wf, Step: "required", Attempt: layout.AttemptKey{N: 1, Engine: engineA}, At: end, By: "B"}); err != nil {
					t.Fatal(err)
				}
			}}, "required", Waiting, true, false, InProgress, false},
		{"Continuation: here we could also retry the execution of failed 'em:Execution's",
			[]func(*Execution){do("required", End{State: Failed}), func(x *Execution) {
				if _, err := Apply(x, d, Retry{Key: "01-A", Workflow: wf, Step: "required", At: end, By: "B"}); err != nil {
					t.Fatal(err)
				}
			}}, "required", Waiting, true, true, InProgress, false},
		// What the document leaves open.
		{"an optional step that failed still satisfies those that need it",
			[]func(*Execution){do("required", End{State: Completed}), do("optional", End{State: Failed}), claim("after")},
			"after", InProgress, true, false, InProgress, false},
		{"after a required failure what is running finishes and is recorded",
			[]func(*Execution){claim("optional"), do("required", End{State: Failed}), func(x *Execution) {
				if _, err := Apply(x, d, End{Workflow: wf, Step: "optional", Attempt: layout.AttemptKey{N: 1, Engine: engineA}, State: Completed, Started: t0, At: t0.Add(time.Hour)}); err != nil {
					t.Fatal(err)
				}
			}}, "optional", Completed, true, true, Failed, true},
	} {
		x := started(t, d)
		for _, ev := range c.events {
			ev(x)
		}
		w, s := x.Find(wf, c.step)
		_, a, _ := s.Current()
		if s.Status != c.want || w.Status != c.workflow || a.Started.IsZero() == c.started || a.Ended.IsZero() == c.ended {
			t.Errorf("%s:\nstep %s %s, started %v, ended %v; workflow %s", c.sentence, c.step, s.Status, a.Started, a.Ended, w.Status)
		}
		if !w.Started.Equal(t0) {
			t.Errorf("%s:\nthe workflow started %v, want %v", c.sentence, w.Started, t0)
		}
		if c.closed != !w.Ended.IsZero() || c.closed && w.Ended != end {
			t.Errorf("%s:\nthe workflow ended %v, want %v", c.sentence, w.Ended, end)
		}
	}
}

// After a required failure nothing new of that workflow starts.
func TestNothingStartsAfterARequiredFailure(t *testing.T) {
	d, err := ParseDefinition("trial.yaml", []byte(stanbolYAML), noopOnly)
	if err != nil {
		t.Fatal(err)
	}
	x := started(t, d)
	run(t, x, d, "required", End{State: Failed})
	for i := range d.Steps {
		if why := x.Blocked(wf, d, i, t0); why == nil {
			t.Errorf("%s could start", d.Steps[i].Name)
		}
	}
}

// TestADatedWorkflowIsScheduled: until its first step is begun; what an earlier version wrote
// of it, and of attempts in progress, is read, and says the same.
func TestADatedWorkflowIsScheduled(t *testing.T) {
	d, err := ParseDefinition("trial.yaml", []byte(stanbolYAML), noopOnly)
	if err != nil {
		t.Fatal(err)
	}
	x := &Execution{Item: "000000000000000"}
	date := t0.Add(24 * time.Hour)
	if _, err := Apply(x, d, Start{Workflow: wf, Attempt: layout.AttemptKey{N: 1, Engine: engineA}, At: t0, NotBefore: date}); err != nil {
		t.Fatal(err)
	}
	is := func(when string, status Status, started time.Time) {
		t.Helper()
		for _, data := range [][]byte{x.Encode(), EncodeBefore(x)} {
			read, err := Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			read.Compute(wf, d)
			if w := read.Workflows[wf]; w.Status != status || !w.Started.Equal(started) {
				t.Errorf("%s: %s, started %v; want %s, %v", when, w.Status, w.Started, status, started)
			}
			if string(read.Encode()) != string(x.Encode()) {
				t.Errorf("%s: it is read otherwise than it was written", when)
			}
		}
	}
	is("before its date", Scheduled, time.Time{})
	if s := x.Workflows[wf].Steps["required"]; s.Status != Waiting {
		t.Errorf("a step of it is %s", s.Status)
	}
	deactivate := Deactivate{Key: "01-A", Workflow: wf, At: t0, By: "B"}
	if tr, err := Apply(x, d, deactivate); err != nil || tr.From != Scheduled {
		t.Errorf("deactivated: %+v, %v", tr, err)
	}
	is("out of the queues", Inactive, time.Time{})
	n := 0
	keys := func() (layout.IntentKey, error) { n++; return layout.IntentKey(fmt.Sprintf("02-%d", n)), nil }
	if tr, err := Apply(x, d, Activate{Key: keys, Workflow: wf, At: t0, By: "B"}); err != nil || tr.To != Scheduled {
		t.Errorf("activated: %+v, %v", tr, err)
	}
	for n := range 3 { // it is tried later, twice: when it was begun stays
		at := date.Add(time.Duration(n+1) * time.Hour)
		k := x.NextKey("required", engineA)
		if _, err := Apply(x, d, Claim{Workflow: wf, Step: "required", Attempt: k, At: at, Runner: "h:1"}); err != nil {
			t.Fatal(err)
		}
		is("claimed", InProgress, date.Add(time.Hour))
		if _, err := Apply(x, d, End{Workflow: wf, Step: "required", Attempt: k, State: Deferred, Started: at, At: at, RetryAt: at}); err != nil {
			t.Fatal(err)
		}
		is("tried later", InProgress, date.Add(time.Hour))
	}
	if n := len(x.Workflows[wf].Steps["required"].Attempts); n != 2 {
		t.Errorf("%d attempts are kept, want the first and the last", n)
	}
}
