package state

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/layout"
)

// dice draws numbers from 0 up to, not including, n.
type dice func(n int) int

func pick[T any](d dice, of []T) T { return of[d(len(of))] }

// drawDefinition writes a random definition: steps that need any of those before
// them, or of the other workflow, and policies of all kinds.
func drawDefinition(d dice, name, other string, steps int) *Definition {
	var b strings.Builder
	fmt.Fprintf(&b, "schema: 1\nname: %s\ndescription: '%d'\nafterFailure: %s\nsteps:\n  - name: register\n    milestone: registered\n", name, d(1_000_000), pick(d, []string{StopAll, Independent}))
	route := d(2*steps) + 1 // or none
	for i := 1; i <= steps; i++ {
		fmt.Fprintf(&b, "  - name: s%d\n", i)
		manual := d(5) == 0 && i != route
		switch {
		case manual:
			b.WriteString("    manual: true\n")
		case i == route && i < steps:
			fmt.Fprintf(&b, "    command: [route]\n    choose: [s%d]\n", i+1)
		default:
			b.WriteString("    robot: noop\n    retries: 1\n")
		}
		if i != route+1 && d(3) == 0 {
			var needs []string
			for j := 1; j < i; j++ {
				if d(2) == 0 {
					needs = append(needs, fmt.Sprintf("s%d", j))
				}
			}
			if d(4) == 0 {
				needs = append(needs, fmt.Sprintf("%s/s%d", other, 1+d(2)))
			}
			fmt.Fprintf(&b, "    requires: [%s]\n", strings.Join(needs, ", "))
		}
		switch d(6) {
		case 0:
			b.WriteString("    optional: true\n")
		case 1:
			if !manual {
				b.WriteString("    continueOnFailure: true\n")
			}
		case 2:
			b.WriteString("    when: [{path: metadata.open, equals: true}]\n")
		case 3:
			fmt.Fprintf(&b, "    notBefore: %dm\n", d(20))
		case 4:
			b.WriteString("    needs: content\n")
		}
	}
	def, err := ParseDefinition("drawn.yaml", []byte(b.String()), noopOnly)
	if err != nil {
		panic(fmt.Sprintf("%v\n%s", err, b.String()))
	}
	return def
}

// act is one attempt a runner once had, and may still believe to have.
type act struct {
	workflow string
	step     layout.Name
	key      layout.AttemptKey
}

// site is one copy of the record, with the runners that write it and the model
// that says what it should be.
type site struct {
	defs    []*Definition // of workflows a and b, and a newer one of a
	x       *Execution
	m       *model
	engines []layout.EngineID
	now     time.Time
	keys    int
	had     []act
	seen    tally // shared by all copies
}

// tally counts what came about in a run of histories, so that a test can tell whether
// it reached what it is for. A nil one counts nothing.
type tally map[string]int

func (c tally) note(what string) {
	if c != nil {
		c[what]++
	}
}

// wants fails the test where something came about less often than asked.
func (c tally) wants(t *testing.T, least map[string]int) {
	t.Helper()
	for _, what := range slices.Sorted(maps.Keys(least)) {
		if c[what] < least[what] {
			t.Errorf("%s: %d times, want at least %d", what, c[what], least[what])
		}
	}
}

// noteEvent counts what an event is, as things are before it.
func (s *site) noteEvent(ev Event, allowed bool, was time.Time) {
	word := "refused"
	if allowed {
		word = "accepted"
	}
	s.seen.note(fmt.Sprintf("%s %s", strings.TrimPrefix(fmt.Sprintf("%T", ev), "state."), word))
	if s.now.Before(was) {
		s.seen.note("the clock was set back")
	}
	switch ev := ev.(type) {
	case End:
		s.noteEnd(ev, allowed)
	case Claim:
		if allowed {
			s.noteClaim(ev)
		}
	}
}

func (s *site) noteEnd(ev End, allowed bool) {
	a, there := s.x.attempt(ev.Workflow, ev.Step, ev.Attempt)
	switch {
	case allowed && ev.State == Completed:
		s.seen.note("completion that counts")
	case allowed:
	case there && a.State != InProgress:
		s.seen.note("end of an attempt that has ended")
	case there:
		s.seen.note("end of an attempt that lost its claim")
	default:
		s.seen.note("end of an attempt that is gone")
	}
}

func (s *site) noteClaim(ev Claim) {
	_, r := s.x.Find(ev.Workflow, ev.Step)
	for k, a := range r.Attempts {
		if a.State == InProgress {
			s.seen.note("claim after a crash")
		}
		if k.Engine != ev.Attempt.Engine {
			s.seen.note("claim of what another engine attempted")
		}
	}
}

// noteJoin counts what a join of o into s makes of them.
func (s *site) noteJoin(o *site, joined *Execution) {
	a, b := s.x, o.x
	if !a.has(b) && !b.has(a) {
		s.seen.note("join of copies that both went on")
	}
	retried := map[string]layout.EngineID{}
	for k, i := range joined.Intents {
		if i.Kind != RetryIntent {
			continue
		}
		of, by := fmt.Sprint(i.Workflow, i.Step, i.Attempt), s.engines[0]
		if strings.Contains(string(k), string(o.engines[0])) {
			by = o.engines[0]
		}
		if other, there := retried[of]; there && other != by {
			s.seen.note("retry by two at once")
		}
		retried[of] = by
	}
	for name, w := range joined.Workflows {
		for step, r := range w.Steps {
			done := 0
			for k, at := range r.Attempts {
				if at.State != Completed {
					continue
				}
				if done++; joined.TakenBack(name, step, k) {
					s.seen.note("completion and its reset in a join")
				}
			}
			if done > 1 {
				s.seen.note("step completed twice, seen by a join")
			}
		}
	}
}

// noteOver counts what is open of a version that was replaced, as after a reset elsewhere.
func (s *site) noteOver() {
	for _, f := range s.m.flows {
		if f.over && f.status() == Inactive && !f.stopped(false) {
			s.seen.note("open run of an earlier version")
		}
	}
}

// noteRules counts what rules of the definition come to.
func (s *site) noteRules(f *mFlow) {
	for i, step := range f.def.Steps {
		r := f.step(layout.Name(step.Name))
		k := r.last()
		switch {
		case s.m.bare && step.Needs == NeedsContent && r.status() == Waiting && !s.m.fetched():
			s.seen.note("waits for content")
		case f.unchosen(i):
			s.seen.note("step not chosen")
		case r.status() == Failed && r.lost[k] && r.cancelled[k]:
			s.seen.note("cancelled, and its engine gone")
		case r.status() == Failed && !f.satisfied(layout.Name(step.Name)) && f.status() == InProgress:
			s.seen.note("failed, and others go on")
		}
	}
}

// has reports whether x knows each intent and attempt of o, as far as o knows it.
func (x *Execution) has(o *Execution) bool {
	for k := range o.Intents {
		if _, there := x.Intents[k]; !there {
			return false
		}
	}
	return !o.any(func(workflow string, step layout.Name, k layout.AttemptKey, a Attempt) bool {
		mine, there := x.attempt(workflow, step, k)
		return !there || mine.State == InProgress && a.State != InProgress
	})
}

func newSite(d dice, engines ...layout.EngineID) *site {
	s := &site{engines: engines, now: t0, defs: []*Definition{
		drawDefinition(d, "a", "b", 2+d(4)), drawDefinition(d, "b", "a", 2+d(2)), drawDefinition(d, "a", "b", 2+d(4))}}
	manifest := fmt.Appendf(nil, `{"metadata":{"open":%v}}`, d(2) == 0)
	s.x = &Execution{Item: "3fa9c0d2e1b7a4", Manifest: manifest}
	id, _ := layout.ParseItemID("000000000000000")
	s.x.Item = id
	s.m = newModel()
	s.x.Bare = d(2) == 0
	s.m.bare = s.x.Bare
	s.x.Around = s.around
	return s
}

// around is what other items, such as children that are not done, make of a step.
func (s *site) around(workflow string, step layout.Name) (*Reason, string) {
	if base, _ := Instance(workflow); s.m.barred[Ref{base, step}] {
		return &Reason{Code: "children", Text: "waits for children"}, ""
	}
	return nil, ""
}

// fork copies a site for other runners.
func (s *site) fork(t testing.TB, engines ...layout.EngineID) *site {
	c := *s
	x, err := Decode(s.x.Encode())
	if err != nil {
		t.Fatal(err)
	}
	c.x, c.m, c.engines, c.had = x, s.m.clone(), engines, slices.Clone(s.had)
	c.x.Manifest, c.x.Since, c.x.Bare, c.x.Around = s.x.Manifest, s.x.Since, s.x.Bare, c.around
	c.compute()
	return &c
}

// plan is the definition a workflow of x runs by.
func (s *site) plan(x *Execution, workflow string) *Definition {
	for _, d := range s.defs {
		if w := x.Workflows[workflow]; w != nil && d.Digest == w.Digest {
			return d
		}
	}
	return nil
}

func (s *site) compute() { computeAll(s, s.x) }

func computeAll(s *site, x *Execution) {
	for name := range x.Workflows {
		x.Compute(name, s.plan(x, name))
	}
}

func (s *site) key() (layout.IntentKey, error) {
	s.keys++
	return layout.IntentKey(fmt.Sprintf("%s-%s-%06d", layout.FormatTime(s.now), s.engines[0], s.keys)), nil
}

// draw makes up the next event; it is often an illegal one.
func (s *site) draw(d dice) Event {
	// Clocks jump, back as well.
	s.now = s.now.Add(time.Duration(d(600)-60) * time.Second)
	engine := pick(d, s.engines)
	key, _ := s.key()
	names := slices.Sorted(maps.Keys(s.x.Workflows))
	if len(names) == 0 || d(25) == 0 {
		def := pick(d, s.defs)
		ev := Start{Workflow: fmt.Sprintf("%s.%d", def.Name, 1+d(2)), Attempt: layout.AttemptKey{N: 1, Engine: engine}, At: s.now}
		ev.Attempt = s.x.NextKey("register", engine)
		if d(4) == 0 {
			ev.NotBefore = s.now.Add(5 * time.Minute)
		}
		return ev
	}
	wf := pick(d, names)
	def := s.plan(s.x, wf)
	step := layout.Name(pick(d, def.Steps).Name)
	next := s.x.NextKey(step, engine)
	cur, _, _ := s.x.Workflows[wf].Steps[step].Current()
	if len(s.x.Holds()) > 0 && d(5) == 0 {
		return Release{Key: s.key, At: s.now, By: "p"}
	}
	switch n := d(40); {
	case n < 12 && d(4) > 0:
		wf, step = s.ready(d, wf, step)
		return Claim{Workflow: wf, Step: step, Attempt: s.x.NextKey(step, engine), At: s.now, Runner: "r"}
	case n < 12:
		return Claim{Workflow: wf, Step: step, Attempt: next, At: s.now, Runner: "r"}
	case n < 24 && len(s.had) > 0:
		// What some runner still believes to have: often stale, or ended already.
		a := pick(d, s.had)
		if d(3) > 0 {
			a = s.had[len(s.had)-1]
		}
		ev := End{Workflow: a.workflow, Step: a.step, Attempt: a.key, Started: s.now, At: s.now,
			State: pick(d, []Status{Completed, Completed, Completed, Skipped, Failed, Failed, Deferred}), Unavailable: d(8) == 0, Yield: Yield{Children: d(3) * d(200), Content: d(6) == 0}}
		if r := def.Step(a.step); wf == a.workflow && r != nil && r.Choose != nil && ev.State == Completed {
			ev.Chosen = pick(d, [][]layout.Name{nil, {}, {layout.Name(r.Choose[0])}})
		}
		if ev.Unavailable {
			ev.State = Failed
		}
		if ev.State == Deferred || ev.State == Failed && d(2) == 0 {
			ev.RetryAt = s.now.Add(time.Duration(d(300)) * time.Second)
		}
		return ev
	case n < 27:
		if d(3) > 0 {
			wf, step = s.forPerson(d, wf, step)
			next = s.x.NextKey(step, engine)
		}
		return Decide{Workflow: wf, Step: step, Attempt: next, State: pick(d, []Status{Completed, Completed, Skipped, Failed}), At: s.now, By: "p"}
	case n == 27:
		if d(3) > 0 {
			wf, step = s.where(d, atWork)
		}
		return Cancel{Key: key, Workflow: wf, Step: step, At: s.now, By: "p"}
	case n < 29:
		if d(3) > 0 {
			wf, step = s.where(d, atWork)
			cur = s.current(wf, step)
		}
		return Lost{Key: key, Workflow: wf, Step: step, Attempt: cur, At: s.now, By: "e"}
	case n < 31:
		if d(3) > 0 {
			wf, step = s.where(d, func(_ *Workflow, r *StepRecord) bool { return r.Status == Failed })
		}
		return Retry{Key: key, Workflow: wf, Step: step, At: s.now, By: "p"}
	case n < 33:
		if d(2) == 0 {
			wf, step = s.where(d, func(_ *Workflow, r *StepRecord) bool { return r.Status == Completed || r.Status == Skipped })
		}
		return Reset{Key: s.key, Workflow: wf, Step: step, After: d(2) == 0, At: s.now, By: "p",
			Seen: pick(d, []Status{"", "", Completed, Failed})}
	case n < 35:
		wf, step = s.ready(d, wf, step)
		next = s.x.NextKey(step, engine)
		return Unneeded{Workflow: wf, Step: step, Attempt: next, At: s.now, By: "e"}
	case n == 35 && d(4) == 0:
		return Hold{Key: key, At: s.now, By: "p"}
	case n <= 36:
		return Release{Key: s.key, At: s.now, By: "p"}
	case n == 37:
		if d(2) == 0 {
			if d(4) > 0 {
				wf, step = s.where(d, atWork)
				cur = s.current(wf, step)
			}
			return Internal{Key: key, LostKey: key + "x", Workflow: wf, Step: step, Attempt: cur, At: s.now, By: "e"}
		}
		return Deactivate{Key: key, Workflow: wf, At: s.now, By: "p"}
	case n == 38:
		if d(4) > 0 {
			wf, _ = s.where(d, func(w *Workflow, _ *StepRecord) bool { return w.Status == Inactive || w.Status == Failed })
		}
		return Activate{Key: s.key, Workflow: wf, At: s.now, By: "p"}
	}
	return Migrate{Key: s.key, Workflow: wf, To: pick(d, s.defs), At: s.now, By: "p"}
}

func atWork(_ *Workflow, r *StepRecord) bool { return r.Status == InProgress }

// where picks one of the steps that are as asked, or, where there is none, any.
func (s *site) where(d dice, is func(*Workflow, *StepRecord) bool) (string, layout.Name) {
	type place struct {
		wf   string
		step layout.Name
	}
	var all, fit []place
	for _, name := range slices.Sorted(maps.Keys(s.x.Workflows)) {
		w := s.x.Workflows[name]
		for _, step := range slices.Sorted(maps.Keys(w.Steps)) {
			p := place{name, step}
			if all = append(all, p); is(w, w.Steps[step]) {
				fit = append(fit, p)
			}
		}
	}
	if len(all) == 0 {
		return "", ""
	}
	if len(fit) == 0 {
		fit = all
	}
	p := pick(d, fit)
	return p.wf, p.step
}

// current is the highest attempt at a step.
func (s *site) current(wf string, step layout.Name) layout.AttemptKey {
	_, r := s.x.Find(wf, step)
	if r == nil {
		return layout.AttemptKey{}
	}
	k, _, _ := r.Current()
	return k
}

// forPerson finds a step that waits for a person, if there is one.
func (s *site) forPerson(d dice, wf string, step layout.Name) (string, layout.Name) {
	for _, name := range slices.Sorted(maps.Keys(s.x.Workflows)) {
		def := s.plan(s.x, name)
		for i := range def.Steps {
			if why := s.x.Blocked(name, def, i, s.now); why != nil && why.Code == "manual" && d(3) > 0 {
				return name, layout.Name(def.Steps[i].Name)
			}
		}
	}
	return wf, step
}

// ready finds a step that could be claimed, if there is one.
func (s *site) ready(d dice, wf string, step layout.Name) (string, layout.Name) {
	for _, name := range slices.Sorted(maps.Keys(s.x.Workflows)) {
		def := s.plan(s.x, name)
		for i := range def.Steps {
			if why := s.x.Blocked(name, def, i, s.now); why == nil && d(3) > 0 {
				return name, layout.Name(def.Steps[i].Name)
			}
		}
	}
	return wf, step
}

// planFor is the definition Apply wants for an event.
func (s *site) planFor(ev Event) *Definition {
	switch ev := ev.(type) {
	case Start:
		base, _ := Instance(ev.Workflow)
		for _, d := range s.defs {
			if d.Name == base {
				return d
			}
		}
	case Claim:
		return s.plan(s.x, ev.Workflow)
	case End:
		return s.plan(s.x, ev.Workflow)
	case Decide:
		return s.plan(s.x, ev.Workflow)
	case Lost:
		return s.plan(s.x, ev.Workflow)
	case Cancel:
		return s.plan(s.x, ev.Workflow)
	case Retry:
		return s.plan(s.x, ev.Workflow)
	case Reset:
		return s.plan(s.x, ev.Workflow)
	case Unneeded:
		return s.plan(s.x, ev.Workflow)
	case Internal:
		return s.plan(s.x, ev.Workflow)
	case Deactivate:
		return s.plan(s.x, ev.Workflow)
	case Activate:
		return s.plan(s.x, ev.Workflow)
	case Migrate:
		return s.plan(s.x, ev.Workflow)
	}
	return nil
}

// mine reports whether an attempt is this site's to end: each has one writer.
func (s *site) mine(ev Event) bool {
	end, ok := ev.(End)
	return !ok || slices.Contains(s.engines, end.Attempt.Engine)
}

// remember keeps a claim, for its end, and for ends that come too late.
func (s *site) remember(ev Event) {
	if c, ok := ev.(Claim); ok {
		s.had = append(s.had, act{c.Workflow, c.Step, c.Attempt})
	}
}
