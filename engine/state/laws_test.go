package state

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const engineC = layout.EngineID("cccccccc")

// act draws one event, applies it to record and model, and holds them together.
func (s *site) act(t testing.TB, d dice) {
	if d(10) == 0 { // children come, or are done
		bar := Ref{pick(d, s.defs).Name, layout.Name(fmt.Sprintf("s%d", 1+d(4)))}
		s.m.barred[bar] = !s.m.barred[bar]
	}
	ev := s.draw(d)
	plan := s.planFor(ev)
	if !s.mine(ev) || plan == nil && !isOfItem(ev) {
		return
	}
	before := string(s.x.Encode())
	allowed := s.m.happen(ev, plan, func(st *Step) bool {
		return len(st.When) == 0 || string(s.x.Manifest) == `{"metadata":{"open":true}}`
	})
	_, err := Apply(s.x, plan, ev)
	var illegal *IllegalError
	switch {
	case err != nil && !errors.As(err, &illegal):
		t.Fatal(err)
	case allowed != (err == nil):
		t.Fatalf("%T %+v: the rules say %v, the record says %v\n%s", ev, ev, allowed, err, before)
	case err != nil:
		if after := string(s.x.Encode()); after != before {
			t.Fatalf("%T was refused and changed the record:\n%s", ev, cmp.Diff(before, after))
		}
		return
	}
	s.remember(ev)
	s.compute() // another workflow's step may have been what was waited for
	s.check(t, fmt.Sprintf("after %T %+v", ev, ev))
}

func isOfItem(ev Event) bool {
	switch ev.(type) {
	case Hold, Release:
		return true
	}
	return false
}

// check compares every status with the model's.
func (s *site) check(t testing.TB, when string) {
	for name, w := range s.x.Workflows {
		f := s.m.flows[name]
		if w.Status != f.status() {
			t.Fatalf("%s: %s is %s, the model says %s\n%s", when, name, w.Status, f.status(), s.x.Encode())
		}
		if (w.Status == Completed || w.Status == Failed) == w.Ended.IsZero() {
			t.Fatalf("%s: %s is %s and ended %v", when, name, w.Status, w.Ended)
		}
		for step, r := range w.Steps {
			if want := f.step(step).status(); r.Status != want {
				t.Fatalf("%s: %s/%s is %s, the model says %s\n%s", when, name, step, r.Status, want, s.x.Encode())
			}
			for k, a := range r.Attempts {
				if want := f.step(step).attempts[k].children; a.Children != want {
					t.Fatalf("%s: %s/%s %s made %d children, the model says %d\n%s", when, name, step, k, a.Children, want, s.x.Encode())
				}
			}
		}
		for i := range f.def.Steps {
			why := s.x.Blocked(name, f.def, i, s.now)
			ready := why == nil || why.Code == "manual"
			if want := s.m.startable(f, i, s.now); ready != want {
				t.Fatalf("%s: %s/%s: ready %v (%+v), the model says %v\n%s", when, name, f.def.Steps[i].Name, ready, why, want, s.x.Encode())
			}
		}
	}
}

// TestModelLaws drives several runners at two copies of one record, with events
// that come late, twice or by two people at once, crashes (attempts nobody ends),
// clocks that jump, and joins, beside the model.
func TestModelLaws(t *testing.T) {
	checks := "1000"
	if os.Getenv("BAGPIPE_SOAK") != "" {
		checks = "50000"
	}
	defer setChecks(t, checks)()
	rapid.Check(t, func(rt *rapid.T) {
		d := dice(func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "d") })
		a := newSite(d, engineA, "a1a1a1a1")
		tb := tbOf{t, rt}
		for range d(30) {
			a.act(tb, d)
		}
		b := a.fork(tb, engineB)
		for range d(60) {
			pick(d, []*site{a, b}).act(tb, d)
			if d(15) == 0 {
				a.takeIn(tb, b)
				a.check(tb, "after a join")
			}
			if d(15) == 0 {
				b.takeIn(tb, a)
				b.check(tb, "after a join")
			}
		}
	})
}

// takeIn joins another copy into this one.
func (s *site) takeIn(t testing.TB, o *site) {
	x, err := Join(s.x, o.x)
	if err != nil {
		t.Fatal(err)
	}
	s.x, x.Around = x, s.around
	s.m.unite(o.m)
	s.compute()
}

// tbOf lets rapid shrink what fails in code that wants a testing.TB.
type tbOf struct {
	testing.TB
	r *rapid.T
}

func (t tbOf) Fatalf(format string, args ...any) { t.r.Fatalf(format, args...) }
func (t tbOf) Fatal(args ...any)                 { t.r.Fatal(args...) }

func setChecks(t *testing.T, n string) (restore func()) {
	was := flag.Lookup("rapid.checks").Value.String()
	if err := flag.Set("rapid.checks", n); err != nil {
		t.Fatal(err)
	}
	return func() { _ = flag.Set("rapid.checks", was) }
}

// TestJoinLaws joins triples of diverged copies: the join is commutative,
// associative, idempotent and absorbing, and no completed step is lost by it.
func TestJoinLaws(t *testing.T) {
	triples := 1_000
	if os.Getenv("BAGPIPE_SOAK") != "" {
		triples = 200_000
	}
	for seed := range triples {
		joinTriple(t, uint64(seed))
	}
}

func joinTriple(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	d := dice(func(n int) int { return r.IntN(n) })
	base := newSite(d, engineA)
	for range d(25) {
		base.act(t, d)
	}
	sites := []*site{base.fork(t, engineA), base.fork(t, engineB), base.fork(t, engineC)}
	for _, s := range sites {
		for range d(25) {
			s.act(t, d)
		}
	}
	join := func(a, b *Execution) *Execution {
		x, err := Join(a, b)
		if err != nil {
			t.Fatal(err)
		}
		computeAll(base, x)
		return x
	}
	a, b, c := sites[0].x, sites[1].x, sites[2].x
	inputs := string(a.Encode()) + string(b.Encode()) + string(c.Encode())
	ab := join(a, b)
	for law, pair := range map[string][2]*Execution{
		"commutative": {ab, join(b, a)},
		"associative": {join(ab, c), join(a, join(b, c))},
		"idempotent":  {join(a, a), a},
		"absorbing":   {join(ab, b), ab},
	} {
		if p, q := string(pair[0].Encode()), string(pair[1].Encode()); p != q {
			t.Fatalf("seed %d: the join is not %s:\n%s", seed, law, cmp.Diff(p, q))
		}
	}
	if string(a.Encode())+string(b.Encode())+string(c.Encode()) != inputs {
		t.Fatalf("seed %d: the join changed what it was given", seed)
	}
	for _, side := range []*Execution{a, b} {
		nothingLost(t, seed, side, ab)
	}
}

// nothingLost wants every completion of a side in the join, and its step
// completed there unless that very completion was reset.
func nothingLost(t *testing.T, seed uint64, side, joined *Execution) {
	for name, w := range side.Workflows {
		for step, s := range w.Steps {
			js := joined.Workflows[name].Steps[step]
			if js == nil && len(s.Attempts) > 0 {
				t.Fatalf("seed %d: the join lost %s/%s", seed, name, step)
			}
			for k, a := range s.Attempts {
				if a.State != Completed {
					continue
				}
				if js.Attempts[k].State != Completed || js.Status != Completed && !joined.reset(name, step, k) {
					t.Fatalf("seed %d: the join lost the completion %s of %s/%s\n%s", seed, k, name, step, joined.Encode())
				}
			}
		}
	}
}
