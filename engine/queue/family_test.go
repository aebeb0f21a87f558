package queue

import (
	"cmp"
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/state"
	"bagpipe/layout"

	"pgregory.net/rapid"
)

// multiplying is a parent's workflow; what is read by an item is drawn.
func multiplying(t interface{ Fatal(...any) }, keys string) *state.Definition {
	d, err := state.ParseDefinition("p.yaml", []byte(`schema: 1
name: p
steps:
  - name: register
  - name: split
    robot: noop
`+keys+`  - name: after
    robot: noop
  - name: person
    manual: true
    requires: [split]
  - name: beside
    robot: noop
    requires: [register]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const childDefinition = `schema: 1
name: w
steps:
  - name: register
  - name: a
    robot: noop
  - name: b
    robot: noop
    requires: [register]
  - name: look
    manual: true
    requires: [a, b]
  - name: last
    robot: noop
`

// nursery is a parent and its children as committed, and an index that was told of
// each change.
type nursery struct {
	w        *world
	children int // the first items of w; the parent is apart
	plan     *state.Definition
	parent   *state.Execution
	made     int
	x        *Index
}

func newNursery(t interface{ Fatal(...any) }, keys string, random *rand.Rand, n int) *nursery {
	child, err := state.ParseDefinition("w.yaml", []byte(childDefinition), nil)
	if err != nil {
		t.Fatal(err)
	}
	y := &nursery{w: &world{plan: child}, plan: multiplying(t, keys), x: newIndex(), children: n}
	id, err := layout.NewItemID(random)
	if err != nil {
		t.Fatal(err)
	}
	y.parent = &state.Execution{Item: id}
	y.apply(t, state.Start{Workflow: "p.1", Attempt: layout.AttemptKey{N: 1, Engine: eng}, At: t0})
	y.apply(t, state.Claim{Workflow: "p.1", Step: "split", Attempt: layout.AttemptKey{N: 1, Engine: eng}, At: t0})
	for range n {
		y.w.add(t, random, 0)
	}
	return y
}

func (y *nursery) apply(t interface{ Fatal(...any) }, ev state.Event) {
	if _, err := state.Apply(y.parent, y.plan, ev); err != nil {
		t.Fatal(err)
	}
}

func (y *nursery) end(t interface{ Fatal(...any) }, made int) {
	y.made = made
	y.apply(t, state.End{Workflow: "p.1", Step: "split", Attempt: layout.AttemptKey{N: 1, Engine: eng}, State: state.Completed, At: t0, Yield: state.Yield{Children: made}})
}

func (y *nursery) parentItem() *Item {
	m := layout.Manifest{Item: y.parent.Item, Label: "parent", Lane: "normal", Created: t0.Add(-time.Hour)}
	return SummariseInto(&Item{}, y.parent, m, func(string) *state.Definition { return y.plan }, t0)
}

func (y *nursery) childItem(i int) *Item {
	x := y.w.items[i]
	m := layout.Manifest{Item: x.Item, Label: fmt.Sprint(i), Lane: lanes.Names[y.w.rank[i]], Created: t0.Add(time.Duration(i) * time.Second),
		Parent: &layout.Parent{Item: y.parent.Item, Workflow: "p.1", Step: "split", Name: fmt.Sprint(i), Generation: 1}}
	return SummariseInto(&Item{}, x, m, func(string) *state.Definition { return y.w.plan }, t0)
}

// TestFamilies: whatever happens to children and parent, in whatever order their
// states come, what bars their steps is what a look at all of them says.
func TestFamilies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewSource(int64(rapid.Int32().Draw(t, "seed"))))
		keys := rapid.SampledFrom([]string{"", "    parentLast: true\n"}).Draw(t, "last") +
			rapid.SampledFrom([]string{"", "    siblings: stop\n"}).Draw(t, "siblings") +
			rapid.SampledFrom([]string{"", "    poolSize: 1\n", "    poolSize: 2\n"}).Draw(t, "pool") +
			rapid.SampledFrom([]string{"", "    optional: true\n"}).Draw(t, "optional")
		n := rapid.IntRange(1, 5).Draw(t, "children")
		y := newNursery(t, keys, random, n)
		there := map[int]bool{}
		known := false
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				if y.made == 0 && rapid.Bool().Draw(t, "ends") {
					y.end(t, n)
				}
				y.x.Put(y.parentItem())
				known = true
			default:
				i := rapid.IntRange(0, n-1).Draw(t, "child")
				if there[i] {
					y.happen(t, i, random)
				}
				there[i] = true
				y.x.Put(y.childItem(i))
			}
			y.check(t, there, known)
		}
		full := newIndex()
		f := full.Fill()
		if known {
			f.Put(y.parentItem())
		}
		for i := range there {
			f.Put(y.childItem(i))
		}
		f.Done()
		same(t, y.x, full, t0)
	})
}

func (y *nursery) happen(t *rapid.T, i int, random *rand.Rand) {
	x := y.w.items[i]
	step := layout.Name(rapid.SampledFrom([]string{"a", "b", "look", "last"}).Draw(t, "step"))
	_, s := x.Find(workflow, step)
	current, _, _ := s.Current()
	intent, _ := layout.NewIntentKey(t0, random, eng)
	_, _ = state.Apply(x, y.w.plan, rapid.SampledFrom([]state.Event{
		state.Claim{Workflow: workflow, Step: step, Attempt: x.NextKey(step, eng), At: t0},
		state.End{Workflow: workflow, Step: step, Attempt: current, State: state.Completed, At: t0},
		state.End{Workflow: workflow, Step: step, Attempt: current, State: state.Failed, At: t0},
		state.End{Workflow: workflow, Step: step, Attempt: current, State: state.Deferred, At: t0, RetryAt: t0.Add(time.Minute)},
		state.Decide{Workflow: workflow, Step: step, Attempt: x.NextKey(step, eng), State: state.Completed, At: t0},
		state.Retry{Key: intent, Workflow: workflow, Step: step, At: t0},
		state.Deactivate{Key: intent, Workflow: workflow, At: t0},
		state.Hold{Key: intent, At: t0},
		state.Release{Key: func() (layout.IntentKey, error) { return intent, nil }, At: t0},
	}).Draw(t, "event"))
}

// childState is what a look at one child says.
type childState struct {
	i                           int
	done, failed, alive, begins bool
	id                          layout.ItemID
}

func (y *nursery) look(i int) (c childState) {
	x := y.w.items[i]
	x.Compute(workflow, y.w.plan)
	w := x.Workflows[workflow]
	c = childState{i: i, id: x.Item, done: w.Status == state.Completed || w.Status == state.Inactive, failed: w.Status == state.Failed}
	begun, person := false, false
	for n := range y.w.plan.Steps {
		begun = begun || n > 0 && len(w.Steps[layout.Name(y.w.plan.Steps[n].Name)].Attempts) > 0
		why := x.Blocked(workflow, y.w.plan, n, t0)
		person = person || why != nil && why.Code == "manual"
		c.begins = c.begins || why == nil
	}
	held := len(x.Holds()) > 0
	c.alive = begun && !person && !held && w.Status == state.InProgress
	c.begins = c.begins && !begun && !held
	return c
}

// check is the model: it looks at every child.
func (y *nursery) check(t *rapid.T, there map[int]bool, known bool) {
	p := state.Step{}
	if known {
		p = y.plan.Steps[1]
	}
	var all, next []childState
	done, failed, alive := 0, 0, 0
	for i := range y.children {
		if !there[i] {
			continue
		}
		c := y.look(i)
		all = append(all, c)
		done, failed, alive = done+one(c.done), failed+one(c.failed), alive+one(c.alive)
		if c.begins {
			next = append(next, c)
		}
	}
	slices.SortFunc(next, func(a, b childState) int { return cmp.Compare(a.i, b.i) }) // in the order of their creation
	place := map[int]bool{}
	for n, c := range next {
		place[c.i] = p.PoolSize == 0 || n < p.PoolSize-alive
	}
	for _, c := range all {
		x, it := y.w.items[c.i], y.x.Item(c.id)
		for n := range y.w.plan.Steps {
			why := x.Blocked(workflow, y.w.plan, n, t0)
			want := code(why)
			switch soft := want == "" || want == "manual" || want == "retry"; {
			case soft && p.Siblings == state.SiblingsStop && failed > 0:
				want = packed.SiblingsCode
			case soft && want != "manual" && c.begins && !place[c.i]:
				want = packed.PoolCode
			}
			if got := code(it.Runs[0].Steps[n].Blocked); got != want {
				t.Fatalf("child %d, %s: %q, want %q (%d done, %d failed, %d alive, %+v)", c.i, y.w.plan.Steps[n].Name, got, want, done, failed, alive, c)
			}
			around, _ := y.x.Around(c.id, workflow, layout.Name(y.w.plan.Steps[n].Name))
			if others := want == packed.SiblingsCode || want == packed.PoolCode; others != (around != nil) {
				t.Fatalf("child %d, %s: around says %v, want %q", c.i, y.w.plan.Steps[n].Name, around, want)
			}
		}
	}
	if !known {
		return
	}
	open := max(y.x.Item(y.parent.Item).Runs[0].Steps[1].Children, len(all)) - done
	if p.Optional {
		open -= failed
	}
	for n := range y.plan.Steps {
		y.parent.Compute("p.1", y.plan)
		want := code(y.parent.Blocked("p.1", y.plan, n, t0))
		if name := y.plan.Steps[n].Name; (name == "after" || name == "person") && (want == "" || want == "manual") && p.ParentLast && open > 0 {
			want = packed.ChildrenCode
		}
		if got := code(y.x.Item(y.parent.Item).Runs[0].Steps[n].Blocked); got != want && !(got == "done" || want == "done" || y.behind(n)) {
			t.Fatalf("parent, %s: %q, want %q (%d of %d children open)", y.plan.Steps[n].Name, got, want, open, len(all))
		}
	}
}

// behind reports whether the parent's record has gone on since it was put.
func (y *nursery) behind(n int) bool {
	it := y.x.Item(y.parent.Item)
	s := y.parent.Workflows["p.1"].Steps["split"]
	return it.Runs[0].Steps[1].Status != s.Status
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestAnotherEngineTakesThePlace: a child that was handed out here, and not claimed yet,
// has no place any more once another engine's claim of its sibling is seen.
func TestAnotherEngineTakesThePlace(t *testing.T) {
	y := newNursery(t, "    poolSize: 1\n", rand.New(rand.NewSource(1)), 2)
	y.x.Put(y.parentItem())
	for i := range 2 {
		y.x.Put(y.childItem(i))
	}
	e, ok, _ := y.x.Take(t0, func(id StepID, _ *state.Step) bool { return id.Workflow == "w" })
	if !ok || e.Item.ID != y.w.items[0].Item {
		t.Fatalf("%+v, %v", e, ok)
	}
	if y.x.Overtaken(e) {
		t.Error("overtaken by nobody")
	}
	claim := state.Claim{Workflow: workflow, Step: "a", Attempt: layout.AttemptKey{N: 1, Engine: eng}, At: t0}
	if _, err := state.Apply(y.w.items[1], y.w.plan, claim); err != nil {
		t.Fatal(err)
	}
	y.x.Put(y.childItem(1))
	if !y.x.Overtaken(e) {
		t.Error("two children would be under way, where one may be")
	}
}

// TestAHandedOutChildKeepsItsPlace: a better sibling that is registered meanwhile waits, as the
// claim may be committed already; once it came to nothing, the sibling has the place.
func TestAHandedOutChildKeepsItsPlace(t *testing.T) {
	y := newNursery(t, "    poolSize: 1\n", rand.New(rand.NewSource(1)), 2)
	y.x.Put(y.parentItem())
	y.x.Put(y.childItem(1))
	child := func(id StepID, _ *state.Step) bool { return id.Workflow == "w" }
	e, ok, _ := y.x.Take(t0, child)
	if !ok || e.Item.ID != y.w.items[1].Item {
		t.Fatalf("%+v, %v", e, ok)
	}
	y.x.Put(y.childItem(0))
	other, ok, _ := y.x.Take(t0, child) // the first's other step
	if !ok || other.Item.ID != e.Item.ID {
		t.Fatalf("the second is handed out beside the first, where one may be: %+v, %v", other, ok)
	}
	if y.x.Overtaken(e) {
		t.Error("a claim that may be committed has lost its place")
	}
	y.x.Return(e)
	y.x.Return(other)
	if next, ok, _ := y.x.Take(t0, child); !ok || next.Item.ID != y.w.items[0].Item {
		t.Errorf("%+v, %v", next, ok)
	}
}

// A step that is out of the flow is so for the children that wait for their place, too:
// those that come to it do not start, until the control is lifted.
func TestAControlOverAFamily(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	y := newNursery(t, "    poolSize: 1\n", random, 3)
	y.x.Put(y.parentItem())
	for i := range 3 {
		y.x.Put(y.childItem(i))
	}
	until := time.Time{}
	control := func(on bool) {
		for it := range y.x.Items() {
			y.x.Put(it.Controlled(func(run *Run, i int) *state.Reason {
				if name := run.Plan.Steps[i].Name; on && (name == "a" || name == "b") {
					return &state.Reason{Code: "off", Until: until}
				}
				return nil
			}))
		}
	}
	codes := func() (out []string) {
		for _, x := range y.w.items {
			out = append(out, code(y.x.Item(x.Item).Runs[0].Steps[1].Blocked))
		}
		return out
	}
	child := func(id StepID, _ *state.Step) bool { return id.Workflow == "w" }
	control(true)
	if got := fmt.Sprint(codes()); got != "[off pool pool]" {
		t.Error(got)
	}
	if e, ok, _ := y.x.Take(t0, child); ok {
		t.Errorf("%s was handed out", e.Step)
	}
	// The first leaves, and the next has its place.
	if _, err := state.Apply(y.w.items[0], y.w.plan, state.Deactivate{Key: "01-5c1e9a70", Workflow: workflow, At: t0}); err != nil {
		t.Fatal(err)
	}
	y.x.Put(y.childItem(0))
	if got := fmt.Sprint(codes()); got != "[inactive off pool]" {
		t.Error(got)
	}
	if e, ok, _ := y.x.Take(t0, child); ok {
		t.Errorf("%s was handed out", e.Step)
	}
	// One may be tried from some time on: one that has its place.
	until = t0.Add(time.Minute)
	control(true)
	if e, ok, _ := y.x.Take(until, child); !ok || e.Item.ID != y.w.items[1].Item {
		t.Errorf("%+v, %v", e, ok)
	} else {
		y.x.Return(e)
	}
	control(false)
	if got := fmt.Sprint(codes()); got != "[inactive  pool]" {
		t.Error(got)
	}
	if e, ok, _ := y.x.Take(t0, child); !ok || e.Item.ID != y.w.items[1].Item {
		t.Errorf("%+v, %v", e, ok)
	}
}

// Thousands of children go through their pool, each once, however they are put.
func TestALargeFamily(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	n := 5_000
	if testing.Short() {
		n = 1000
	}
	y := newNursery(t, "    parentLast: true\n    poolSize: 50\n    siblings: stop\n", random, n)
	y.x.Put(y.parentItem())
	for i := range n {
		y.x.Put(y.childItem(i))
	}
	y.end(t, n)
	y.x.Put(y.parentItem())
	most, taken := 0, 0
	for {
		e, ok, _ := y.x.Take(t0, func(id StepID, _ *state.Step) bool { return id.Workflow == "w" })
		if !ok {
			break
		}
		taken++
		i := 0
		if _, err := fmt.Sscan(e.Item.Label, &i); err != nil {
			t.Fatal(err)
		}
		for _, ev := range []state.Event{
			state.Claim{Workflow: workflow, Step: e.Step, Attempt: y.w.items[i].NextKey(e.Step, eng), At: t0},
			state.Deactivate{Key: layout.IntentKey(fmt.Sprintf("%026d-%s", i, eng)), Workflow: workflow, At: t0},
		} {
			if _, err := state.Apply(y.w.items[i], y.w.plan, ev); err != nil {
				t.Fatal(err)
			}
			y.x.Put(y.childItem(i))
			most = max(most, y.x.Families(y.parent.Item)[0].Alive)
		}
		y.x.Return(e)
	}
	if f := y.x.Families(y.parent.Item)[0]; taken != n || f.Done != n || most > 50 {
		t.Errorf("%d taken, at most %d alive, %+v", taken, most, f)
	}
	if e, ok, _ := y.x.Take(t0, nil); !ok || e.Step != "after" {
		t.Errorf("after all children: %+v, %v", e, ok)
	}
}

func code(why *state.Reason) string {
	if why == nil {
		return ""
	}
	return why.Code
}
