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
	fmt.Fprintf(&b, "schema: 1\nname: %s\ndescription: '%d'\nsteps:\n  - name: register\n    milestone: registered\n", name, d(1_000_000))
	for i := 1; i <= steps; i++ {
		fmt.Fprintf(&b, "  - name: s%d\n", i)
		manual := d(5) == 0
		switch {
		case manual:
			b.WriteString("    manual: true\n")
		default:
			b.WriteString("    robot: noop\n    retries: 1\n")
		}
		if d(3) == 0 {
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
}

func newSite(d dice, engines ...layout.EngineID) *site {
	s := &site{engines: engines, now: t0, defs: []*Definition{
		drawDefinition(d, "a", "b", 2+d(4)), drawDefinition(d, "b", "a", 2+d(2)), drawDefinition(d, "a", "b", 2+d(4))}}
	manifest := fmt.Appendf(nil, `{"metadata":{"open":%v}}`, d(2) == 0)
	s.x = &Execution{Item: "3fa9c0d2e1b7a4", Manifest: manifest}
	id, _ := layout.ParseItemID("000000000000000")
	s.x.Item = id
	s.m = newModel()
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
	c.x.Manifest, c.x.Around = s.x.Manifest, c.around
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
			State: pick(d, []Status{Completed, Completed, Skipped, Failed, Failed, Deferred}), Unavailable: d(8) == 0, Children: d(3) * d(200)}
		if ev.Unavailable {
			ev.State = Failed
		}
		if ev.State == Deferred || ev.State == Failed && d(2) == 0 {
			ev.RetryAt = s.now.Add(time.Duration(d(300)) * time.Second)
		}
		return ev
	case n < 27:
		return Decide{Workflow: wf, Step: step, Attempt: next, State: pick(d, []Status{Completed, Skipped, Failed}), At: s.now, By: "p"}
	case n < 29:
		return Lost{Key: key, Workflow: wf, Step: step, Attempt: cur, At: s.now, By: "e"}
	case n < 31:
		return Retry{Key: key, Workflow: wf, Step: step, At: s.now, By: "p"}
	case n < 33:
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
			return Internal{Key: key, LostKey: key + "x", Workflow: wf, Step: step, Attempt: cur, At: s.now, By: "e"}
		}
		return Deactivate{Key: key, Workflow: wf, At: s.now, By: "p"}
	case n == 38:
		return Activate{Key: s.key, Workflow: wf, At: s.now, By: "p"}
	}
	return Migrate{Key: s.key, Workflow: wf, To: pick(d, s.defs), At: s.now, By: "p"}
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

// mine tells whether an attempt is this site's to end: each has one writer.
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
