package queue

import (
	"fmt"
	"testing"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// flown are items with their records, driven as a run drives them.
type flown struct {
	t     *testing.T
	x     *Index
	plans map[string]*state.Definition // by digest
	items map[layout.ItemID]*state.Execution
	now   time.Time
}

func newFlown(t *testing.T) *flown {
	return &flown{t: t, x: New(), plans: map[string]*state.Definition{}, items: map[layout.ItemID]*state.Execution{}, now: t0}
}

func (f *flown) plan(text string) *state.Definition {
	f.t.Helper()
	d, err := state.ParseDefinition("w.yaml", []byte(text), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.plans[d.Digest] = d
	return d
}

func (f *flown) apply(id layout.ItemID, d *state.Definition, e state.Event) {
	f.t.Helper()
	f.now = f.now.Add(time.Second)
	x := f.items[id]
	if x == nil {
		x = &state.Execution{Item: id}
		f.items[id] = x
	}
	if _, err := state.Apply(x, d, e); err != nil {
		f.t.Fatal(err)
	}
	f.x.Put(SummariseInto(&Item{}, x, layout.Manifest{Item: id, Lane: "normal", Created: t0}, func(digest string) *state.Definition { return f.plans[digest] }, f.now))
}

func (f *flown) start(id layout.ItemID, d *state.Definition) {
	f.t.Helper()
	f.apply(id, d, state.Start{Workflow: d.Name + ".1", Attempt: layout.AttemptKey{N: 1, Engine: eng}, At: f.now})
}

// work takes a step and ends it; false: none may be taken.
func (f *flown) work(to state.Status) (e Entry, ok bool) {
	f.t.Helper()
	if e, ok, _ = f.x.Take(f.now, nil); !ok {
		return e, false
	}
	d := e.plan()
	k := f.items[e.Item.ID].NextKey(e.Step, eng)
	f.apply(e.Item.ID, d, state.Claim{Workflow: e.Run, Step: e.Step, Attempt: k, At: f.now, Runner: "h:1"})
	f.apply(e.Item.ID, d, state.End{Workflow: e.Run, Step: e.Step, Attempt: k, State: to, Kind: "system", Started: f.now, At: f.now})
	f.x.Return(e)
	return e, true
}

const limited = "schema: 1\nname: %s\ninFlight: %d\nsteps:\n  - name: register\n  - name: a\n    robot: noop\n  - name: b\n    robot: noop\n"

// TestWhatIsLetGoStandsBehindTheLimit: however many items a person lets be tried again,
// or releases, at once, no more of them are under way than the limit lets.
func TestWhatIsLetGoStandsBehindTheLimit(t *testing.T) {
	for _, how := range []string{"retry", "reset", "release", "activate"} {
		f := newFlown(t)
		d := f.plan(fmt.Sprintf(limited, "w", 2))
		for i := range 20 {
			f.start(layout.ItemIDOf(uint64(i+1)), d)
		}
		for range 20 { // each is tried, and stopped
			to := state.Failed
			if how != "retry" && how != "reset" {
				to = state.Completed
			}
			e, ok := f.work(to)
			if !ok {
				t.Fatal("none may be taken, though all before have left the flight")
			}
			id := e.Item.ID
			key := layout.IntentKey(how + string(id))
			switch how {
			case "release":
				f.apply(id, d, state.Hold{Key: key, At: f.now, By: "p"})
			case "activate":
				f.apply(id, d, state.Deactivate{Key: key, Workflow: "w.1", At: f.now, By: "p"})
			}
		}
		for id := range f.items {
			again := func() (layout.IntentKey, error) { return layout.IntentKey("again" + string(id)), nil }
			key, _ := again()
			f.apply(id, d, map[string]state.Event{
				"retry":    state.Retry{Key: key, Workflow: "w.1", Step: "a", At: f.now, By: "p"},
				"reset":    state.Reset{Key: again, Workflow: "w.1", Step: "a", At: f.now, By: "p"},
				"release":  state.Release{Key: again, At: f.now, By: "p"},
				"activate": state.Activate{Key: again, Workflow: "w.1", At: f.now, By: "p"},
			}[how])
		}
		var out []Entry
		for {
			e, ok, more := f.x.Take(f.now, nil)
			if !ok {
				if !more {
					t.Errorf("%s: nothing is held back", how)
				}
				break
			}
			out = append(out, e)
		}
		if len(out) != 2 {
			t.Errorf("%s: %d items are under way at once, and the limit is 2", how, len(out))
		}
		for _, e := range out {
			f.x.Return(e)
		}
		for range 1000 {
			if _, ok := f.work(state.Completed); !ok {
				break
			}
		}
		for id, x := range f.items {
			if s := x.Workflows["w.1"].Status; s != state.Completed {
				t.Errorf("%s: item %s is %s in the end", how, id, s)
			}
		}
	}
}

// TestWorkflowsDoNotStarveEachOther: items of two workflows that wait for steps of each
// other do not fill the limits against each other.
func TestWorkflowsDoNotStarveEachOther(t *testing.T) {
	f := newFlown(t)
	const crossed = "schema: 1\nname: %s\ninFlight: 1\nsteps:\n  - name: register\n  - name: first\n    robot: noop\n  - name: second\n    robot: noop\n    requires: [first, %s/first]\n"
	a, b := f.plan(fmt.Sprintf(crossed, "a", "b")), f.plan(fmt.Sprintf(crossed, "b", "a"))
	for i := range 6 {
		id := layout.ItemIDOf(uint64(i + 1))
		if i%2 == 0 { // half begin with one, half with the other
			f.start(id, a)
		} else {
			f.start(id, b)
		}
	}
	for range 2 { // one item of each is under way
		f.work(state.Completed)
	}
	for i := range 6 {
		id := layout.ItemIDOf(uint64(i + 1))
		if i%2 == 0 {
			f.start(id, b)
		} else {
			f.start(id, a)
		}
	}
	for range 1000 {
		if _, ok := f.work(state.Completed); !ok {
			break
		}
	}
	for id, x := range f.items {
		for name, w := range x.Workflows {
			if w.Status != state.Completed {
				t.Errorf("%s of item %s is %s in the end", name, id, w.Status)
			}
		}
	}
}
