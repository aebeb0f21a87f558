package attempt_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/act"
	"bagpipe/engine/ask"
	"bagpipe/engine/attempt"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// nursery is a workspace with one item whose step makes children.
type nursery struct {
	t     testing.TB
	root  string
	seed  int64
	make  func(c *steps.Call) ([]steps.Child, error)
	child string // the children's workflow
	item  layout.ItemID
}

const nurseryFlows = `schema: 1
name: parents
steps:
  - name: register
  - name: breed
    robot: breed
    parentLast: true
  - name: after
    robot: noop
`

func newNursery(t testing.TB, n int) *nursery {
	t.Helper()
	y := &nursery{t: t, root: filepath.Join(t.TempDir(), "w"), child: "pupils"}
	y.make = func(c *steps.Call) ([]steps.Child, error) { return y.files(c, n) }
	y.must(engine.Init(context.Background(), y.root, y.options()))
	for name, text := range map[string]string{"parents": nurseryFlows, "pupils": "schema: 1\nname: pupils\nsteps:\n  - name: register\n  - name: learn\n    robot: noop\n"} {
		y.must(os.WriteFile(filepath.Join(y.root, "workflows", name+".yaml"), []byte(text), 0o644))
	}
	drop := filepath.Join(t.TempDir(), "parent.txt")
	y.must(os.WriteFile(drop, []byte("p"), 0o644))
	y.do(func(e *engine.Engine) {
		a, err := e.Intake.Add(context.Background(), drop, intake.AddOptions{Workflow: "parents"})
		y.must(err)
		y.item = a.Item
	})
	return y
}

// files makes n children that differ.
func (y *nursery) files(c *steps.Call, n int) (children []steps.Child, err error) {
	if err := os.Mkdir(filepath.Join(c.Scratch, "children"), 0o755); err != nil {
		return nil, err
	}
	for i := range n {
		name := fmt.Sprintf("pupil-%d", i)
		if err := os.WriteFile(filepath.Join(c.Scratch, "children", name), []byte(name), 0o644); err != nil {
			return nil, err
		}
		children = append(children, steps.Child{From: layout.RelPath("children/" + name), Name: name, Workflow: layout.Name(y.child)})
	}
	return children, nil
}

func (y *nursery) options() engine.Options {
	y.seed++
	robots := steps.Builtins()
	robots["breed"] = steps.Builtin{Robot: steps.Func(func(_ context.Context, c *steps.Call) (steps.Result, error) {
		children, err := y.make(c)
		return steps.Result{Children: children}, err
	})}
	return engine.Options{Now: time.Now, Random: rand.New(rand.NewSource(y.seed)), Robots: robots, ID: layout.EngineID(fmt.Sprintf("%08x", y.seed)),
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()}}
}

func (y *nursery) must(err error) {
	y.t.Helper()
	if err != nil {
		y.t.Fatal(err)
	}
}

func (y *nursery) do(f func(*engine.Engine)) {
	y.t.Helper()
	e, err := engine.Open(context.Background(), y.root, y.options())
	y.must(err)
	defer func() { y.must(e.Close()) }()
	f(e)
}

// begun claims the step that makes children, and does what its robot does.
func (y *nursery) begun(e *engine.Engine) *attempt.Work {
	y.t.Helper()
	ctx := context.Background()
	y.must(e.Index.Load(ctx))
	entry, ok, _ := e.Index.Loaded().Take(time.Now(), nil)
	if !ok || entry.Step != "breed" {
		y.t.Fatalf("%+v is ready", entry)
	}
	w, ok := e.Attempt.Claimed(ctx, entry, func(*attempt.Work) {})
	if !ok {
		y.t.Fatal(w.Err)
	}
	y.must(w.Call(ctx))
	return w
}

func (y *nursery) items(e *engine.Engine, f ask.Filter) []ask.ItemRow {
	y.t.Helper()
	rows, err := e.Ask.Items(f, ask.Page{})
	y.must(err)
	return rows
}

// settled wants the parent done with n children, each there once and done, and
// nothing left behind.
func (y *nursery) settled(n int) {
	y.t.Helper()
	y.do(func(e *engine.Engine) {
		y.must(e.Index.Load(context.Background()))
		rows := y.items(e, ask.Filter{Parent: y.item})
		labels := map[string]bool{}
		for _, r := range rows {
			labels[r.Label] = true
			if r.Status != state.Completed {
				y.t.Errorf("%s is %s: %s", r.Label, r.Status, r.Why)
			}
		}
		if len(rows) != n || len(labels) != n {
			y.t.Errorf("%d children, %d labels, want %d", len(rows), len(labels), n)
		}
		d, err := e.Ask.Show(context.Background(), y.item)
		y.must(err)
		if d.Workflows[0].Status != state.Completed || d.Families[0].Made != n || d.Families[0].Done != n {
			y.t.Errorf("%s, %+v", d.Workflows[0].Status, d.Families)
		}
	})
	if left := y.left(); len(left) > 0 {
		y.t.Errorf("left behind: %v", left)
	}
}

// left lists journals, and items' folders that are no items.
func (y *nursery) left() (found []string) {
	y.t.Helper()
	y.must(filepath.WalkDir(filepath.Join(y.root, layout.ItemsDir), func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(d.Name(), attempt.ChildrenPrefix):
			found = append(found, d.Name())
		case len(d.Name()) == layout.ItemIDLen:
			if _, err := os.Lstat(filepath.Join(p, layout.ExecutionJSON)); err != nil {
				found = append(found, d.Name())
			}
		}
		return nil
	}))
	return found
}

func TestChildrenAreRegistered(t *testing.T) {
	y := newNursery(t, 600)
	y.do(func(e *engine.Engine) {
		s, err := e.Run(context.Background(), engine.RunOptions{Parallel: 2})
		y.must(err)
		if s.Steps[state.Completed] != 602 {
			t.Errorf("%+v", s)
		}
	})
	y.settled(600)
}

// An attempt that lost its claim registers nothing, whenever it finds out.
func TestALostAttemptRegistersNoChild(t *testing.T) {
	y := newNursery(t, 3)
	y.do(func(e *engine.Engine) {
		w := y.begun(e)
		planned, err := w.Plan(y.t.Context())
		y.must(err)
		y.must(w.Lose(y.t.Context()))
		if err := planned.Register(y.t.Context(), 2); !errors.Is(err, state.ErrStale) {
			t.Errorf("registered by a lost attempt: %v", err)
		}
		if w.HandOver(w.Children()[2:]); !errors.Is(w.Publish(y.t.Context()), state.ErrStale) {
			t.Error("published by a lost attempt")
		}
		y.must(e.Index.Load(context.Background()))
		if rows := y.items(e, ask.Filter{Parent: y.item}); len(rows) > 0 {
			t.Errorf("%+v", rows)
		}
		w.Release()
	})
	if left := y.left(); len(left) != 3 { // a journal and two folders
		t.Errorf("%v", left)
	}
	y.do(func(e *engine.Engine) {
		_, err := e.Run(context.Background(), engine.RunOptions{Parallel: 2})
		y.must(err)
	})
	y.settled(3)
}

// What a crash leaves at each point of the way, the next attempt goes on from.
func TestACrashWhileChildrenAreRegistered(t *testing.T) {
	const n = 5
	for _, at := range []string{"journal", "moved", "one committed", "all committed", "journal gone", "outputs published"} {
		t.Run(at, func(t *testing.T) {
			y := newNursery(t, n)
			y.do(func(e *engine.Engine) { // which dies there: it ends nothing, and its claim stands
				w := y.begun(e)
				y.crash(w, at)
			})
			y.do(func(e *engine.Engine) {
				_, err := e.Run(context.Background(), engine.RunOptions{Parallel: 2})
				y.must(err)
			})
			y.settled(n)
		})
	}
}

// crash goes as far as at says.
func (y *nursery) crash(w *attempt.Work, at string) {
	y.t.Helper()
	if at == "journal gone" || at == "outputs published" {
		y.must(w.Multiply(y.t.Context()))
		if at == "outputs published" {
			y.must(w.PutOut())
		}
		return
	}
	planned, err := w.Plan(y.t.Context())
	y.must(err)
	y.must(planned.Note())
	if at == "journal" {
		return
	}
	y.must(planned.Move())
	commit := map[string]int{"one committed": 1, "all committed": planned.Len()}[at]
	for i := range commit {
		y.must(planned.Commit(y.t.Context(), i))
	}
}

// What stands in a child's place and is no item, as an engine that was thought dead may
// have put it there, puts the attempt off and costs no retry; those that were registered
// before stay, and the next attempt goes on.
func TestSomethingInAChildsPlace(t *testing.T) {
	y := newNursery(t, 300) // more than share their syncs
	var last layout.ItemID
	y.do(func(e *engine.Engine) {
		last = layout.ChildID(y.item, "parents.1", "breed", "pupil-299")
		put(t, e.Ledger.Path(layout.ItemDir(last)), map[string]string{"source/pupil-299": "another's"})
		_, err := e.Run(context.Background(), engine.RunOptions{Parallel: 2})
		y.must(err)
		d, err := e.Ask.Show(context.Background(), y.item)
		y.must(err)
		a := d.Workflows[0].Steps[1].Attempts
		if len(a) != 1 || a[0].State != state.Deferred || a[0].Children != attempt.ChildrenAtOnce || !strings.Contains(a[0].Message, "is there already") {
			t.Errorf("%+v", a)
		}
	})
	options := y.options()
	options.Now = func() time.Time { return time.Now().Add(time.Hour) } // when it is tried again
	e, err := engine.Open(context.Background(), y.root, options)
	y.must(err)
	_, err = e.Run(context.Background(), engine.RunOptions{Parallel: 2})
	y.must(errors.Join(err, e.Close()))
	y.settled(300)
	want(t, filepath.Join(y.root, layout.ItemDir(last)), map[string]string{"source/pupil-299": "pupil-299"})
}

// A step that is done again with one child more, and one fewer, adds the one and keeps
// the other.
func TestChildrenOfAnotherTime(t *testing.T) {
	y := newNursery(t, 3)
	run := func() {
		y.do(func(e *engine.Engine) {
			_, err := e.Run(context.Background(), engine.RunOptions{Parallel: 2})
			y.must(err)
		})
	}
	run()
	y.settled(3)
	y.make = func(c *steps.Call) ([]steps.Child, error) {
		children, err := y.files(c, 4)
		return slices.Delete(children, 0, 1), err
	}
	y.do(func(e *engine.Engine) {
		_, err := e.Act.Reset(context.Background(), act.SeenStep{StepRef: ledger.StepRef{Item: y.item, Step: "breed"}, Status: state.Completed}, true, "")
		y.must(err)
	})
	run()
	y.do(func(e *engine.Engine) {
		y.must(e.Index.Load(context.Background()))
		if rows := y.items(e, ask.Filter{Parent: y.item}); len(rows) != 4 {
			t.Errorf("%d children", len(rows))
		}
	})
}

// Children may have children: each parent waits for its own, and so for all below.
func TestChildrenOfChildren(t *testing.T) {
	y := newNursery(t, 2)
	y.make = func(c *steps.Call) ([]steps.Child, error) {
		children, err := y.files(c, 2)
		for i := range children {
			if children[i].Label = c.Label + "." + children[i].Name; c.Label == "parent.txt" {
				children[i].Workflow = "parents"
			}
		}
		return children, err
	}
	y.do(func(e *engine.Engine) {
		s, err := e.Run(context.Background(), engine.RunOptions{Parallel: 2})
		y.must(err)
		if s.Steps[state.Completed] != 3*2+4 {
			t.Errorf("%+v", s)
		}
		rows := y.items(e, ask.Filter{})
		after := map[layout.ItemID]time.Time{} // when the step that waits began, or the last one did
		parent := map[layout.ItemID]layout.ItemID{}
		for _, r := range rows {
			d, err := e.Ask.Show(context.Background(), r.Item)
			y.must(err)
			last := d.Workflows[0].Steps[len(d.Workflows[0].Steps)-1]
			after[r.Item], parent[r.Item] = last.Attempts[0].Claimed, r.Parent
			if r.Status != state.Completed {
				t.Errorf("%s: %s %s", r.Label, r.Status, r.Why)
			}
		}
		for id, p := range parent {
			if p != "" && after[p].Before(after[id]) {
				t.Errorf("%s went on before its child %s was done", p, id)
			}
		}
		if len(rows) != 7 {
			t.Errorf("%d items", len(rows))
		}
	})
}

// What a robot must not hand over is refused before anything is registered.
func TestChildrenThatAreRefused(t *testing.T) {
	for want, handed := range map[string][]steps.Child{
		`made child "pupil-0" twice`: {{From: "children/pupil-0", Name: "pupil-0"}, {From: "children/pupil-1", Name: "pupil-0"}},
		`made child "" twice`:        {{From: "children/pupil-0"}},
		"a step makes at most":       make([]steps.Child, attempt.MaxChildren+1),
		"not a plain path below":     {{From: "../../../intake", Name: "x"}},
		"no such file":               {{From: "children/none", Name: "none"}},
	} {
		y := newNursery(t, 2)
		y.do(func(e *engine.Engine) {
			w := y.begun(e)
			w.HandOver(handed)
			if err := w.Publish(y.t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
			y.must(e.Index.Load(context.Background()))
			if rows := y.items(e, ask.Filter{Parent: y.item}); len(rows) > 0 {
				t.Errorf("%s: %d children", want, len(rows))
			}
			w.Release()
		})
		if left := y.left(); len(left) > 0 {
			t.Errorf("%s: left %v", want, left)
		}
	}
}

// Children of children end at some depth: an archive may hold itself.
func TestGenerationsEnd(t *testing.T) {
	y := newNursery(t, 1)
	y.child = "parents"
	y.do(func(e *engine.Engine) {
		s, err := e.Run(context.Background(), engine.RunOptions{Parallel: 2})
		y.must(err)
		if len(s.Failed) != 1 || s.Failed[0].Kind != state.ContentKind || !strings.Contains(s.Failed[0].Message, "8 deep") {
			t.Errorf("%+v", s.Failed)
		}
		if rows := y.items(e, ask.Filter{}); len(rows) != 1+attempt.MaxGenerations {
			t.Errorf("%d items", len(rows))
		}
	})
}

// BenchmarkChildren registers the children of one step; the time of each is the same
// however many they are.
func BenchmarkChildren(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				y := newNursery(b, n)
				y.do(func(e *engine.Engine) {
					w := y.begun(e)
					begin := time.Now()
					y.must(w.Multiply(y.t.Context()))
					b.ReportMetric(float64(time.Since(begin).Microseconds())/float64(n), "us/child")
				})
			}
		})
	}
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func want(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != text {
			t.Errorf("%s: %q, %v; want %q", name, data, err, text)
		}
	}
}
