package state

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

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
	if d(60) == 0 { // its content is attached
		s.x.Bare, s.m.bare = false, false
	}
	if d(80) == 0 { // the item becomes another version
		s.x.Since = s.now
		s.m.renew(s.now)
		s.compute()
	}
	was := s.now
	s.do(t, s.draw(d), was)
}

// do applies an event, which the clock stood at was before.
func (s *site) do(t testing.TB, ev Event, was time.Time) {
	plan := s.planFor(ev)
	if !s.mine(ev) || plan == nil && !isOfItem(ev) {
		return
	}
	before := string(s.x.Encode())
	allowed := s.m.happen(ev, plan, func(st *Step) bool {
		return len(st.When) == 0 || string(s.x.Manifest) == `{"metadata":{"open":true}}`
	})
	s.noteEvent(ev, allowed, was)
	read := s.read(t)
	keys := s.keys
	_, errRead := Apply(read, plan, ev)
	s.keys = keys
	_, err := Apply(s.x, plan, ev)
	if is, want := string(s.x.Encode()), string(read.Encode()); is != want || fmt.Sprint(err) != fmt.Sprint(errRead) {
		t.Fatalf("%T %+v makes another record of one that was just read (%v, %v):\n%s", ev, ev, err, errRead, cmp.Diff(want, is))
	}
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

// read gives the record as its bytes are read.
func (s *site) read(t testing.TB) *Execution {
	x, err := Decode(s.x.Encode())
	if err != nil {
		t.Fatal(err)
	}
	x.Manifest, x.Since, x.Bare, x.Site, x.Around = s.x.Manifest, s.x.Since, s.x.Bare, s.x.Site, s.x.Around
	computeAll(s, x)
	return x
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
		if want := f.begun(); !w.Started.Equal(want) {
			t.Fatalf("%s: %s was started %v, the model says %v\n%s", when, name, w.Started, want, s.x.Encode())
		}
		if w.Status == Scheduled {
			s.seen.note("scheduled")
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
		s.noteRules(f)
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
		checks = "30000"
	}
	defer setChecks(t, checks)()
	seen := tally{}
	rapid.Check(t, func(rt *rapid.T) {
		d := evenly(rt)
		a := newSite(d, engineA, "a1a1a1a1")
		a.seen = seen
		tb := tbOf{t, rt}
		for range d(30) {
			a.act(tb, d)
		}
		b := a.fork(tb, engineB)
		for range d(60) {
			pick(d, []*site{a, b}).act(tb, d)
			if d(8) == 0 {
				retryBoth(tb, d, a, b)
			}
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
	if !testing.Short() { // a fifth of the histories does not come upon everything
		seen.wants(t, reached)
	}
}

// reached is what a run of TestModelLaws must come upon, at least, to prove anything.
var reached = map[string]int{
	"Activate accepted": 15, "Cancel accepted": 10, "Claim accepted": 200, "Deactivate accepted": 40, "Decide accepted": 150, "End accepted": 120,
	"Hold accepted": 25, "Internal accepted": 6, "Lost accepted": 20, "Migrate accepted": 10, "Release accepted": 10,
	"Reset accepted": 20, "Retry accepted": 50, "Start accepted": 200, "Unneeded accepted": 4,

	"Claim refused": 200, "Decide refused": 200, "End refused": 200, "Migrate refused": 50, "Reset refused": 50, "Retry refused": 50,

	"completion that counts":                 40,
	"end of an attempt that has ended":       200,
	"end of an attempt that lost its claim":  50,
	"claim after a crash":                    15,
	"claim of what another engine attempted": 50,
	"the clock was set back":                 300,
	"retry by two at once":                   40,
	"join of copies that both went on":       80,
	"completion and its reset in a join":     40,
	"step completed twice, seen by a join":   10,
	"open run of an earlier version":         20,
	"failed, and others go on":               20,
	"waits for content":                      50,
	"step not chosen":                        20,
	"cancelled, and its engine gone":         3,
	"scheduled":                              50,
}

// evenly draws every number as often as any other; rapid's own ranges favour small
// ones, so that most events would be of the first kinds.
func evenly(rt *rapid.T) dice {
	bit := rapid.Bool()
	return func(n int) int {
		v, most := 0, 1
		for ; most < 4*n; most *= 2 {
			if v *= 2; bit.Draw(rt, "") {
				v++
			}
		}
		return v * n / most
	}
}

// retryBoth lets two people, who know nothing of each other, retry what failed.
func retryBoth(t testing.TB, d dice, a, b *site) {
	wf, step := a.where(d, func(_ *Workflow, s *StepRecord) bool { return s.Status == Failed })
	for _, s := range []*site{a, b} {
		if _, r := s.x.Find(wf, step); r == nil || r.Status != Failed {
			return
		}
	}
	for _, s := range []*site{a, b} {
		key, _ := s.key()
		s.do(t, Retry{Key: key, Workflow: wf, Step: step, At: s.now, By: "p"}, s.now)
	}
}

// takeIn joins another copy into this one.
func (s *site) takeIn(t testing.TB, o *site) {
	x, err := Join(s.x, o.x)
	if err != nil {
		t.Fatal(err)
	}
	s.noteJoin(o, x)
	s.m.bare = s.m.bare && o.m.bare
	s.x, x.Around = x, s.around
	s.noteOver()
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
	seen := tally{}
	for seed := range triples {
		joinTriple(t, uint64(seed), seen)
	}
	seen.wants(t, map[string]int{
		"join of copies that both went on":     triples / 3,
		"completion and its reset in a join":   triples / 10,
		"step completed twice, seen by a join": triples / 100,
		"retry by two at once":                 triples / 1000,
		"completion that counts":               triples / 3,
		"claim after a crash":                  triples / 10,
	})
}

func joinTriple(t *testing.T, seed uint64, seen tally) {
	r := rand.New(rand.NewPCG(seed, 1))
	d := dice(func(n int) int { return r.IntN(n) })
	base := newSite(d, engineA)
	base.seen = seen
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
	sites[0].noteJoin(sites[1], ab)
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
				if js.Attempts[k].State != Completed || js.Status != Completed && !joined.TakenBack(name, step, k) {
					t.Fatalf("seed %d: the join lost the completion %s of %s/%s\n%s", seed, k, name, step, joined.Encode())
				}
			}
		}
	}
}
