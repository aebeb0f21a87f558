package queue

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"

	"pgregory.net/rapid"
)

const workflow = "w.1"

var (
	t0  = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	eng = layout.EngineID("5c1e9a70")
)

const definition = `schema: 1
name: w
steps:
  - name: register
  - name: a
    robot: noop
  - name: b
    robot: noop
    requires: [register]
  - name: approve
    manual: true
    requires: [a, b]
  - name: last
    robot: noop
`

func plan(t testing.TB) *state.Definition {
	t.Helper()
	d, err := state.ParseDefinition("w.yaml", []byte(definition), nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// key names a step of an item in the model.
type key struct {
	item layout.ItemID
	run  string
	step layout.Name
}

func (e Entry) key() key { return key{e.Item.ID, e.Run, e.Step} }

// lanes are those of the tests, by rank.
var lanes = Lanes{Names: []layout.Name{"lane0", "lane1", "lane2"}}

func newIndex() *Index {
	x := New()
	x.SetLanes(lanes)
	return x
}

// world is a set of items as committed, the model the index is held to.
type world struct {
	plan  *state.Definition
	items []*state.Execution
	rank  []int
}

func (w *world) add(t interface{ Fatal(...any) }, random *rand.Rand, rank int) *state.Execution {
	id, err := layout.NewItemID(random)
	if err != nil {
		t.Fatal(err)
	}
	x := &state.Execution{Item: id}
	if _, err := state.Apply(x, w.plan, state.Start{Workflow: workflow, Attempt: layout.AttemptKey{N: 1, Engine: eng}, At: t0}); err != nil {
		t.Fatal(err)
	}
	w.items = append(w.items, x)
	w.rank = append(w.rank, rank)
	return x
}

func (w *world) item(i int, now time.Time) *Item {
	x := w.items[i]
	m := layout.Manifest{Item: x.Item, Label: fmt.Sprint(i), Lane: lanes.Names[w.rank[i]], Created: t0.Add(time.Duration(i) * time.Second)}
	return SummariseInto(&Item{}, x, m, func(string) *state.Definition { return w.plan }, now)
}

// ready is the full scan: what Blocked says of every step, nothing else.
func (w *world) ready(now time.Time) map[key]bool {
	out := map[key]bool{}
	for _, x := range w.items {
		x.Compute(workflow, w.plan)
		for i := range w.plan.Steps {
			if x.Blocked(workflow, w.plan, i, now) == nil {
				out[key{x.Item, workflow, layout.Name(w.plan.Steps[i].Name)}] = true
			}
		}
	}
	return out
}

// TestIndexEqualsFullScan: after any events, what the index hands out is exactly
// what a scan of everything finds ready.
func TestIndexEqualsFullScan(t *testing.T) {
	d := plan(t)
	rapid.Check(t, func(t *rapid.T) {
		w := &world{plan: d}
		random := rand.New(rand.NewSource(int64(rapid.Int32().Draw(t, "seed"))))
		x := newIndex()
		now := t0
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			if len(w.items) == 0 || rapid.IntRange(0, 4).Draw(t, "new") == 0 {
				w.add(t, random, rapid.IntRange(0, 2).Draw(t, "rank"))
				x.Put(w.item(len(w.items)-1, now))
				continue
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "s")) * time.Second)
			i := rapid.IntRange(0, len(w.items)-1).Draw(t, "item")
			happen(t, w, i, now, random)
			x.Put(w.item(i, now))
		}
		want := w.ready(now)
		got := map[key]bool{}
		for {
			e, ok, _ := x.Take(now, nil)
			if !ok {
				break
			}
			if got[e.key()] {
				t.Fatalf("%v was handed out twice", e.key())
			}
			got[e.key()] = true
		}
		for k := range want {
			if !got[k] {
				t.Fatalf("%v is ready and was not handed out", k)
			}
		}
		for k := range got {
			if !want[k] {
				t.Fatalf("%v was handed out and is not ready", k)
			}
		}
	})
}

// happen makes a random event; the illegal ones change nothing.
func happen(t *rapid.T, w *world, i int, now time.Time, random *rand.Rand) {
	x := w.items[i]
	step := layout.Name(w.plan.Steps[rapid.IntRange(1, len(w.plan.Steps)-1).Draw(t, "step")].Name)
	_, s := x.Find(workflow, step)
	current, _, _ := s.Current()
	intent, _ := layout.NewIntentKey(now, random, eng)
	ev := rapid.SampledFrom([]state.Event{
		state.Claim{Workflow: workflow, Step: step, Attempt: x.NextKey(step, eng), At: now},
		state.End{Workflow: workflow, Step: step, Attempt: current, State: state.Completed, At: now},
		state.End{Workflow: workflow, Step: step, Attempt: current, State: state.Failed, At: now},
		state.End{Workflow: workflow, Step: step, Attempt: current, State: state.Failed, At: now, RetryAt: now.Add(30 * time.Second)},
		state.End{Workflow: workflow, Step: step, Attempt: current, State: state.Deferred, At: now, RetryAt: now.Add(10 * time.Second)},
		state.Decide{Workflow: workflow, Step: step, Attempt: x.NextKey(step, eng), State: state.Completed, At: now},
		state.Retry{Key: intent, Workflow: workflow, Step: step, At: now},
		state.Hold{Key: intent, At: now},
		state.Release{Key: func() (layout.IntentKey, error) { return intent, nil }, At: now},
		state.Lost{Key: intent, Workflow: workflow, Step: step, Attempt: current, At: now},
	}).Draw(t, "event")
	_, _ = state.Apply(x, w.plan, ev)
}

func TestLaneThenOldestFirst(t *testing.T) {
	w := &world{plan: plan(t)}
	random := rand.New(rand.NewSource(1))
	x := newIndex()
	for i, rank := range []int{1, 1, 0, 2} {
		w.add(t, random, rank)
		x.Put(w.item(i, t0))
	}
	var order string
	for {
		e, ok, _ := x.Take(t0, nil)
		if !ok {
			break
		}
		order += e.Item.Label + string(e.Step) + " "
	}
	if want := "2a 2b 0a 0b 1a 1b 3a 3b "; order != want {
		t.Errorf("order %s, want %s", order, want)
	}
}

func TestAnEntryIsNotHandedOutAgainUntilReturned(t *testing.T) {
	w := &world{plan: plan(t)}
	w.add(t, rand.New(rand.NewSource(1)), 0)
	x := newIndex()
	x.Put(w.item(0, t0))
	first, _, _ := x.Take(t0, nil)
	_, _, _ = x.Take(t0, nil)
	x.Put(w.item(0, t0))
	if e, ok, _ := x.Take(t0, nil); ok {
		t.Errorf("%v was handed out while taken", e.key())
	}
	x.Return(first)
	if e, ok, _ := x.Take(t0, nil); !ok || e.key() != first.key() {
		t.Error("a returned step that is ready still was not handed out again")
	}
}

func TestWhatWaitsForItsTime(t *testing.T) {
	w := &world{plan: plan(t)}
	x0 := w.add(t, rand.New(rand.NewSource(1)), 0)
	k := layout.AttemptKey{N: 1, Engine: eng}
	for _, ev := range []state.Event{
		state.Claim{Workflow: workflow, Step: "a", Attempt: k, At: t0},
		state.End{Workflow: workflow, Step: "a", Attempt: k, State: state.Deferred, At: t0, RetryAt: t0.Add(time.Minute)},
		state.Decide{Workflow: workflow, Step: "b", Attempt: k, State: state.Skipped, At: t0},
	} {
		if _, err := state.Apply(x0, w.plan, ev); err != nil {
			t.Fatal(err)
		}
	}
	x := newIndex()
	x.Put(w.item(0, t0))
	if _, ok, _ := x.Take(t0, nil); ok {
		t.Error("handed out before its time")
	}
	if due, ok := x.NextDue(); !ok || !due.Equal(t0.Add(time.Minute)) {
		t.Errorf("due %v, %v", due, ok)
	}
	e, ok, _ := x.Take(t0.Add(time.Minute), nil)
	if !ok {
		t.Error("not handed out at its time")
	}
	// It is to be done again later, and its time comes while it is taken still.
	x.Put(w.item(0, t0))
	if _, ok, _ := x.Take(t0.Add(time.Hour), nil); ok {
		t.Error("handed out twice")
	}
	x.Return(e)
	if _, ok, _ := x.Take(t0.Add(time.Hour), nil); !ok {
		t.Error("forgotten, as its time came while it was taken")
	}
}

func TestARecordThatDoesNotFitIsBroken(t *testing.T) {
	other, err := state.ParseDefinition("v.yaml", []byte("schema: 1\nname: v\nsteps:\n  - name: register\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*state.Execution) *state.Definition{
		"is missing":                         func(*state.Execution) *state.Definition { return nil },
		"its pinned definition is that of v": func(*state.Execution) *state.Definition { return other },
		"the record names other.1 as a run of workflow w": func(x *state.Execution) *state.Definition {
			x.Workflows["other.1"] = x.Workflows[workflow]
			delete(x.Workflows, workflow)
			return plan(t)
		},
	} {
		w := &world{plan: plan(t)}
		x := w.add(t, rand.New(rand.NewSource(1)), 0)
		d := change(x)
		it := SummariseInto(&Item{}, x, layout.Manifest{Item: x.Item}, func(string) *state.Definition { return d }, t0)
		if !strings.Contains(it.Broken, want) {
			t.Errorf("%q, want %q", it.Broken, want)
		}
		index := newIndex()
		index.Put(it)
		if e, ok, _ := index.Take(t0, nil); ok {
			t.Errorf("%v was handed out", e.key())
		}
	}
}

// Steps that need another workflow's, that are not needed, or whose workflow is
// inactive.
func TestSeveralWorkflows(t *testing.T) {
	d, err := state.ParseDefinition("w.yaml", []byte("schema: 1\nname: w\nsteps:\n  - name: register\n  - name: a\n    robot: noop\n    requires: [v/b]\n  - name: c\n    manual: true\n    requires: []\n    when: [{path: label, equals: other}]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := state.ParseDefinition("v.yaml", []byte("schema: 1\nname: v\nsteps:\n  - name: register\n  - name: b\n    robot: noop\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	plans := func(digest string) *state.Definition {
		if digest == v.Digest {
			return v
		}
		return d
	}
	w := &world{plan: d}
	x := w.add(t, rand.New(rand.NewSource(1)), 0)
	ready := func() (names []string) {
		index := newIndex()
		index.Put(SummariseInto(&Item{}, x, layout.Manifest{Item: x.Item, Label: "map"}, plans, t0))
		for {
			e, ok, _ := index.Take(t0, nil)
			if !ok {
				return names
			}
			names = append(names, e.Run+"/"+string(e.Step))
		}
	}
	apply := func(d *state.Definition, ev state.Event) {
		t.Helper()
		if _, err := state.Apply(x, d, ev); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want ...string) {
		t.Helper()
		if got := ready(); !slices.Equal(got, want) {
			t.Errorf("ready: %v, want %v", got, want)
		}
	}
	// A manual step whose condition does not hold is taken, to be skipped.
	is("w.1/c")
	apply(v, state.Start{Workflow: "v.1", Attempt: x.NextKey("register", eng), At: t0.Add(time.Second)})
	is("w.1/c", "v.1/b") // the run that began first
	apply(v, state.Deactivate{Key: "01-A", Workflow: "v.1", At: t0})
	is("w.1/c")
	apply(v, state.Activate{Key: func() (layout.IntentKey, error) { return "02-A", nil }, Workflow: "v.1", At: t0})
	apply(v, state.Decide{Workflow: "v.1", Step: "b", Attempt: x.NextKey("b", eng), State: state.Completed, At: t0})
	is("w.1/a", "w.1/c")
}
