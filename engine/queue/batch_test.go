package queue

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"bagpipe/engine/state"
	"bagpipe/layout"

	"pgregory.net/rapid"
)

const gathered = `schema: 1
name: w
steps:
  - name: register
  - name: a
    robot: noop
  - name: all
    robot: noop
    onBatchComplete: true
  - name: last
    robot: noop
`

// TestOneItemStandsForItsBatch: whatever happens to the items, in whatever order
// their states come, what the index hands out of the step is what a look at all of
// them says.
func TestOneItemStandsForItsBatch(t *testing.T) {
	t.Run("failed items do not count", func(t *testing.T) { standsForItsBatch(t, gathered, false) })
	t.Run("waitForFailed", func(t *testing.T) {
		standsForItsBatch(t, strings.Replace(gathered, "onBatchComplete: true", "onBatchComplete: true\n    waitForFailed: true", 1), true)
	})
}

func standsForItsBatch(t *testing.T, plan string, waitForFailed bool) {
	d, err := state.ParseDefinition("w.yaml", []byte(plan), nil)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		w := &world{plan: d}
		random := rand.New(rand.NewSource(int64(rapid.Int32().Draw(t, "seed"))))
		x := newIndex()
		n := rapid.IntRange(1, 4).Draw(t, "items")
		put := func(i int) {
			it := w.item(i, t0)
			it.Batch = "b"
			x.Put(it)
		}
		for i := range n {
			w.add(t, random, 0)
			put(i)
		}
		closed := false
		for range rapid.IntRange(1, 25).Draw(t, "events") {
			if rapid.IntRange(0, 6).Draw(t, "close") == 0 {
				closed = true
				x.SetBatch("b", true)
			}
			i := rapid.IntRange(0, n-1).Draw(t, "item")
			happenGathered(t, w, i, random)
			put(i)
			checkGathering(t, w, x, closed, waitForFailed)
		}
	})
}

func happenGathered(t *rapid.T, w *world, i int, random *rand.Rand) {
	x := w.items[i]
	step := layout.Name(rapid.SampledFrom([]string{"a", "all", "last"}).Draw(t, "step"))
	_, s := x.Find(workflow, step)
	current, _, _ := s.Current()
	intent, _ := layout.NewIntentKey(t0, random, eng)
	_, _ = state.Apply(x, w.plan, rapid.SampledFrom([]state.Event{
		state.Claim{Workflow: workflow, Step: step, Attempt: x.NextKey(step, eng), At: t0},
		state.End{Workflow: workflow, Step: step, Attempt: current, State: state.Completed, At: t0},
		state.End{Workflow: workflow, Step: step, Attempt: current, State: state.Failed, At: t0},
		state.Decide{Workflow: workflow, Step: step, Attempt: x.NextKey(step, eng), State: state.Completed, At: t0},
		state.Decide{Workflow: workflow, Step: step, Attempt: x.NextKey(step, eng), State: state.Skipped, At: t0},
		state.Retry{Key: intent, Workflow: workflow, Step: step, At: t0},
		state.Deactivate{Key: intent, Workflow: workflow, At: t0},
		state.Hold{Key: intent, At: t0},
	}).Draw(t, "event"))
}

// checkGathering is the model: it looks at every item.
func checkGathering(t *rapid.T, w *world, x *Index, closed, waitForFailed bool) {
	open := closed
	var first *state.Execution
	begun := func(e *state.Execution) bool {
		_, s := e.Find(workflow, "all")
		return len(s.Attempts) > 0 && s.Status != state.Skipped
	}
	able := func(e *state.Execution) bool {
		flow, _ := e.Find(workflow, "all")
		return flow.Status != state.Failed && flow.Status != state.Inactive
	}
	for _, e := range w.items {
		e.Compute(workflow, w.plan)
	}
	for _, e := range w.items { // in the order of their creation
		flow, s := e.Find(workflow, "all")
		here := s.Status != state.Waiting || !flow.Active() || flow.Status == state.Failed && !waitForFailed || e.Blocked(workflow, w.plan, 2, t0) == nil
		open = open && here
		if first == nil || begun(e) && !begun(first) || begun(e) == begun(first) && able(e) && !able(first) {
			first = e
		}
	}
	_, s := first.Find(workflow, "all")
	done := s.Status == state.Completed || s.Status == state.Skipped
	for i, e := range w.items {
		it := x.Item(e.Item)
		got := it.Runs[0].Steps[2]
		ready := e.Blocked(workflow, w.plan, 2, t0) == nil
		want := ""
		switch {
		case !ready:
			want = "not ready"
		case !open:
			want = "waits"
		case e == first:
			want = "does it"
		case done:
			want = "not needed"
		default:
			want = "waits"
		}
		is := map[bool]string{true: "not ready", false: "waits"}[!ready]
		if ready && got.Blocked == nil {
			is = map[bool]string{true: "does it", false: "not needed"}[got.Skip == ""]
		}
		if is != want {
			t.Fatalf("item %d %s, want: %s (closed %v, open %v, first %s, done %v): %+v", i, is, want, closed, open, first.Item.Short(), done, got)
		}
	}
}

// A large batch is gathered on the right item, in whatever order its items end.
func TestALargeBatch(t *testing.T) {
	d, err := state.ParseDefinition("w.yaml", []byte(gathered), nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 5_000
	if testing.Short() {
		n = 1000
	}
	w, x, random := &world{plan: d}, newIndex(), rand.New(rand.NewSource(1))
	x.SetBatch("b", true)
	put := func(i int) {
		it := w.item(i, t0)
		it.Batch = "b"
		x.Put(it)
	}
	for i := range n {
		w.add(t, random, 0)
		put(i)
	}
	for i := n - 1; i >= 0; i-- {
		if _, err := state.Apply(w.items[i], d, state.Decide{Workflow: workflow, Step: "a", Attempt: layout.AttemptKey{N: 1, Engine: eng}, State: state.Completed, At: t0}); err != nil {
			t.Fatal(err)
		}
		put(i)
	}
	e, ok, _ := x.Take(t0, nil)
	if !ok || e.Step != "all" || e.Item.Label != fmt.Sprint(0) {
		t.Errorf("%+v, %v", e, ok)
	}
	if e, ok, _ := x.Take(t0, nil); ok {
		t.Errorf("also %s of %s was handed out", e.Step, e.Item.Label)
	}
}
