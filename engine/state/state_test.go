package state

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
)

const (
	engineA = layout.EngineID("5c1e9a70")
	engineB = layout.EngineID("b0b0b0b0")
	wf      = "trial.1"
)

var t0 = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

const trialYAML = `schema: 1
name: trial
steps:
  - name: register
    milestone: registered
  - name: unpack
    robot: noop
    retries: 1
  - name: ocr
    command: [ocr]
    optional: true
  - name: thumbs
    robot: noop
    requires: [unpack]
  - name: approve
    manual: true
    requires: [ocr, thumbs]
    milestone: approved
  - name: store
    robot: noop
`

func trial(t testing.TB) *Definition {
	t.Helper()
	d, err := ParseDefinition("trial.yaml", []byte(trialYAML), noopOnly)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func noopOnly(name string) (Robot, bool) { return Robot{Parameters: []string{"sleep"}}, name == "noop" }

func testID(t testing.TB) layout.ItemID {
	t.Helper()
	for _, d := range "0123456789abcdef" {
		if id, err := layout.ParseItemID("3fa9c0d2e1b7a4" + string(d)); err == nil {
			return id
		}
	}
	t.Fatal("no check digit fits")
	return ""
}

func started(t testing.TB, d *Definition) *Execution {
	t.Helper()
	x := &Execution{Item: testID(t)}
	if _, err := Apply(x, d, Start{Workflow: wf, Attempt: layout.AttemptKey{N: 1, Engine: engineA}, At: t0, By: "A"}); err != nil {
		t.Fatal(err)
	}
	return x
}

// run drives one step through an attempt that ends in state.
func run(t testing.TB, x *Execution, d *Definition, step layout.Name, end End) Transition {
	t.Helper()
	k := x.NextKey(step, engineA)
	if _, err := Apply(x, d, Claim{Workflow: wf, Step: step, Attempt: k, At: t0.Add(time.Second), Runner: "h:1"}); err != nil {
		t.Fatal(err)
	}
	end.Workflow, end.Step, end.Attempt, end.Started, end.At = wf, step, k, t0.Add(time.Second), t0.Add(3*time.Second)
	tr, err := Apply(x, d, end)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestAnItemGoesThroughItsWorkflow(t *testing.T) {
	d := trial(t)
	x := started(t, d)
	if x.Milestones["registered"] != t0 {
		t.Error("starting must reach the first step's milestone")
	}
	run(t, x, d, "unpack", End{State: Completed})
	run(t, x, d, "ocr", End{State: Failed, Kind: SystemKind, Message: "no licence"})
	run(t, x, d, "thumbs", End{State: Skipped, Message: "not applicable: no images"})
	if w := x.Workflows[wf]; w.Status != InProgress {
		t.Errorf("an optional failure made the workflow %s", w.Status)
	}
	if why := x.Blocked(wf, d, 4, t0); why == nil || why.Code != "manual" {
		t.Errorf("approve: %+v", why)
	}
	if _, err := Apply(x, d, Decide{Workflow: wf, Step: "approve", Attempt: layout.AttemptKey{N: 1, Engine: engineB}, State: Completed, At: t0.Add(time.Hour), By: "P"}); err != nil {
		t.Fatal(err)
	}
	run(t, x, d, "store", End{State: Completed, Milestones: []layout.Name{"archived"}})
	if w := x.Workflows[wf]; w.Status != Completed {
		t.Errorf("status %s", w.Status)
	}
	for _, m := range []layout.Name{"approved", "archived"} {
		if x.Milestones[m].IsZero() {
			t.Errorf("milestone %s is missing", m)
		}
	}
	out := copyOf(t, x)
	out.Compute(wf, d)
	if string(out.Encode()) != string(x.Encode()) {
		t.Error(cmp.Diff(string(x.Encode()), string(out.Encode())))
	}
}

func TestIllegalEventsChangeNothing(t *testing.T) {
	d := trial(t)
	key := func(n int) layout.AttemptKey { return layout.AttemptKey{N: n, Engine: engineA} }
	open := func() *Execution { return started(t, d) }
	running := func() *Execution {
		x := open()
		if _, err := Apply(x, d, Claim{Workflow: wf, Step: "unpack", Attempt: key(1), At: t0}); err != nil {
			t.Fatal(err)
		}
		return x
	}
	done := func() *Execution { x := open(); run(t, x, d, "unpack", End{State: Completed}); return x }
	broken := func() *Execution {
		x := open()
		run(t, x, d, "unpack", End{State: Failed, Kind: ContentKind})
		return x
	}
	held := func() *Execution {
		x := open()
		if _, err := Apply(x, nil, Hold{Key: "01-A", At: t0, By: "P"}); err != nil {
			t.Fatal(err)
		}
		return x
	}
	lost := func() *Execution {
		x := open()
		for n, text := range []string{"fixity: a", "fixity: no copy is sound: a"} {
			if _, err := Apply(x, nil, Hold{Key: layout.IntentKey(fmt.Sprintf("0%d-A", n)), At: t0, By: "P", Text: text}); err != nil {
				t.Fatal(err)
			}
		}
		return x
	}
	for _, c := range []struct {
		name  string
		x     *Execution
		ev    Event
		stale bool
	}{
		{"start twice", open(), Start{Workflow: wf, Attempt: key(1), At: t0}, false},
		{"claim with an open prerequisite", open(), Claim{Workflow: wf, Step: "ocr", Attempt: key(1), At: t0}, false},
		{"claim of a manual step", done(), Claim{Workflow: wf, Step: "approve", Attempt: key(1), At: t0}, false},
		{"claim of a running step", running(), Claim{Workflow: wf, Step: "unpack", Attempt: key(2), At: t0}, false},
		{"claim of a completed step", done(), Claim{Workflow: wf, Step: "unpack", Attempt: key(2), At: t0}, false},
		{"claim after a required failure", broken(), Claim{Workflow: wf, Step: "unpack", Attempt: key(2), At: t0}, false},
		{"claim of a held item", held(), Claim{Workflow: wf, Step: "unpack", Attempt: key(1), At: t0}, false},
		{"end of another's attempt", running(), End{Workflow: wf, Step: "unpack", Attempt: layout.AttemptKey{N: 1, Engine: engineB}, State: Completed, At: t0}, true},
		{"end twice", done(), End{Workflow: wf, Step: "unpack", Attempt: key(1), State: Completed, At: t0}, true},
		{"complete a manual step too soon", open(), Decide{Workflow: wf, Step: "approve", Attempt: key(1), State: Completed, At: t0}, false},
		{"complete a running step", running(), Decide{Workflow: wf, Step: "unpack", Attempt: key(2), State: Completed, At: t0}, false},
		{"retry of a completed step", done(), Retry{Key: "02-A", Workflow: wf, Step: "unpack", At: t0}, false},
		{"retry of a waiting step", open(), Retry{Key: "02-A", Workflow: wf, Step: "unpack", At: t0}, false},
		{"hold twice", held(), Hold{Key: "02-A", At: t0}, false},
		{"hold beside a person's", held(), Hold{Key: "03-A", At: t0, Text: "fixity: no copy is sound: b"}, false},
		{"hold twice for want of a sound copy", lost(), Hold{Key: "03-A", At: t0, Text: "fixity: no copy is sound: b"}, false},
		{"release what is not held", open(), Release{At: t0}, false},
		{"no such step", open(), Claim{Workflow: wf, Step: "nope", Attempt: key(1), At: t0}, false},
		{"no such workflow", open(), Claim{Workflow: "x.1", Step: "unpack", Attempt: key(1), At: t0}, false},
		{"loss of an ended attempt", done(), Lost{Key: "02-A", Workflow: wf, Step: "unpack", Attempt: key(1), At: t0}, true},
	} {
		before := string(c.x.Encode())
		_, err := Apply(c.x, d, c.ev)
		var illegal *IllegalError
		if !errors.As(err, &illegal) || errors.Is(err, ErrStale) != c.stale {
			t.Errorf("%s: %v", c.name, err)
		}
		if after := string(c.x.Encode()); after != before {
			t.Errorf("%s changed the record:\n%s", c.name, cmp.Diff(before, after))
		}
	}
}

func TestALostAttemptIsFenced(t *testing.T) {
	d := trial(t)
	x := started(t, d)
	k := layout.AttemptKey{N: 1, Engine: engineA}
	if _, err := Apply(x, d, Claim{Workflow: wf, Step: "unpack", Attempt: k, At: t0}); err != nil {
		t.Fatal(err)
	}
	tr, err := Apply(x, d, Lost{Key: "01-B", Workflow: wf, Step: "unpack", Attempt: k, At: t0, By: "B"})
	if err != nil || tr.From != InProgress || tr.To != Waiting {
		t.Fatalf("%+v, %v", tr, err)
	}
	if _, err := Apply(x, d, End{Workflow: wf, Step: "unpack", Attempt: k, State: Completed, At: t0}); !errors.Is(err, ErrStale) {
		t.Errorf("the dead worker's completion counted: %v", err)
	}
	if x.Failures(wf, "unpack") != 0 {
		t.Error("a crash cost a retry")
	}
	run(t, x, d, "unpack", End{State: Completed})
	if _, s := x.Find(wf, "unpack"); s.Status != Completed || len(s.Attempts) != 2 {
		t.Errorf("%+v", s)
	}
}

func TestRetries(t *testing.T) {
	d := trial(t)
	x := started(t, d)
	at := t0.Add(time.Minute)
	tr := run(t, x, d, "unpack", End{State: Failed, Kind: SystemKind, RetryAt: at, Message: "disk"})
	if tr.To != Waiting {
		t.Errorf("to be retried, but %s", tr.To)
	}
	if why := x.Blocked(wf, d, 1, t0.Add(30*time.Second)); why == nil || why.Code != "retry" || why.Until != at {
		t.Errorf("%+v", why)
	}
	if why := x.Blocked(wf, d, 1, at); why != nil {
		t.Errorf("its time has come: %+v", why)
	}
	if _, err := Apply(x, d, Retry{Key: "01-A", Workflow: wf, Step: "unpack", At: t0, By: "P"}); err != nil {
		t.Error(err)
	}
	if why := x.Blocked(wf, d, 1, t0); why != nil {
		t.Errorf("a person's retry does not wait: %+v", why)
	}
}

// A record that stays decoded is what its bytes say, also of a pause with jitter.
func TestATimeToRetryIsAsItIsWritten(t *testing.T) {
	d := trial(t)
	x := started(t, d)
	run(t, x, d, "unpack", End{State: Failed, Kind: SystemKind, RetryAt: t0.Add(1_234_567_891), Message: "disk"})
	read := copyOf(t, x)
	_, is := x.Find(wf, "unpack")
	_, written := read.Find(wf, "unpack")
	k, a, _ := is.Current()
	if want := written.Attempts[k].NotBefore; want.IsZero() || !a.NotBefore.Equal(want) {
		t.Errorf("%s, but written as %s", a.NotBefore, want)
	}
}

func TestDeferredAttemptsDoNotPileUp(t *testing.T) {
	d := trial(t)
	x := started(t, d)
	for range 20 {
		k := x.NextKey("unpack", engineA)
		if _, err := Apply(x, d, Claim{Workflow: wf, Step: "unpack", Attempt: k, At: t0}); err != nil {
			t.Fatal(err)
		}
		if _, err := Apply(x, d, End{Workflow: wf, Step: "unpack", Attempt: k, State: Deferred, At: t0, RetryAt: t0}); err != nil {
			t.Fatal(err)
		}
	}
	if _, s := x.Find(wf, "unpack"); len(s.Attempts) != 1 || s.Status != Waiting {
		t.Errorf("%d attempts, %s", len(s.Attempts), s.Status)
	}
}

// To be an item is to be registered, whatever the first step is called for.
func TestEveryItemIsRegistered(t *testing.T) {
	d, err := ParseDefinition("w.yaml", []byte("schema: 1\nname: w\nsteps:\n  - name: begin\n    milestone: inprocess\n  - name: a\n    manual: true\n"), noopOnly)
	if err != nil {
		t.Fatal(err)
	}
	x := &Execution{Item: "3fa9c0d2e1b7a45"}
	for n, at := range []time.Time{t0, t0.Add(time.Hour)} {
		ev := Start{Workflow: fmt.Sprintf("w.%d", n+1), Attempt: x.NextKey("begin", engineA), At: at}
		if _, err := Apply(x, d, ev); err != nil {
			t.Fatal(err)
		}
		if _, err := Apply(x, d, Decide{Workflow: ev.Workflow, Step: "a", Attempt: x.NextKey("a", engineA), State: Completed, At: at}); err != nil {
			t.Fatal(err)
		}
	}
	if len(x.Milestones) != 2 || !x.Milestones["registered"].Equal(t0) || !x.Milestones["inprocess"].Equal(t0) {
		t.Errorf("%v", x.Milestones)
	}
}

// TestACancelledAttemptIsNotMadeAgain: a cancel alone decides nothing, as the engine ends
// the attempt; should the engine be gone, the step has failed, until a person retries it.
func TestACancelledAttemptIsNotMadeAgain(t *testing.T) {
	d := trial(t)
	x := started(t, d)
	k := layout.AttemptKey{N: 1, Engine: engineA}
	status := func() Status { return x.Workflows[wf].Steps["unpack"].Status }
	happen := func(ev Event, want Status) {
		t.Helper()
		if _, err := Apply(x, d, ev); err != nil || status() != want {
			t.Fatalf("%T: %v; the step is %s, want %s", ev, err, status(), want)
		}
	}
	cancel := Cancel{Key: "01-A", Workflow: wf, Step: "unpack", At: t0, By: "Ada", Text: "why"}
	if _, err := Apply(x, d, cancel); err == nil {
		t.Error("what does not run was cancelled")
	}
	happen(Claim{Workflow: wf, Step: "unpack", Attempt: k, At: t0, Runner: "r"}, InProgress)
	happen(cancel, InProgress)
	if _, err := Apply(x, d, cancel); err == nil {
		t.Error("an attempt was cancelled twice")
	}
	happen(Lost{Key: "02-A", Workflow: wf, Step: "unpack", Attempt: k, At: t0, By: "B"}, Failed)
	again, err := Decode(x.Encode())
	if err != nil {
		t.Fatal(err)
	}
	again.Compute(wf, d)
	if got := again.Workflows[wf].Steps["unpack"].Status; got != Failed {
		t.Errorf("read again it is %s", got)
	}
	happen(Retry{Key: "03-A", Workflow: wf, Step: "unpack", At: t0, By: "Ada"}, Waiting)
	happen(Claim{Workflow: wf, Step: "unpack", Attempt: layout.AttemptKey{N: 2, Engine: engineA}, At: t0, Runner: "r"}, InProgress)
}
