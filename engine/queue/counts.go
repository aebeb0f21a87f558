package queue

import (
	"slices"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// counts are kept with every change, so that no question of how many has to look at
// the items.
type counts struct {
	flights flights
	items   int
	held    int
	open    int // steps that wait or run, of items nothing keeps from going on
	// ahead are, by collection, items with such steps that do not wait for other items alone.
	ahead map[layout.Name]int
	plans []planCount
	with  map[string]int // items, by workflow
}

// planCount counts the runs that go by one definition.
type planCount struct {
	runs  int
	steps []stepCount
}

type stepCount struct {
	by            [8]int // by status
	person, ready int    // of the waiting ones
}

// flights counts what limits are compared with.
type flights struct {
	steps       map[StepID]int
	workflows   map[string]int
	collections map[layout.Name]int
	all         int
}

func newCounts() counts {
	return counts{ahead: map[layout.Name]int{}, with: map[string]int{}, flights: flights{steps: map[StepID]int{}, workflows: map[string]int{}, collections: map[layout.Name]int{}}}
}

// add counts an item n times: 1 when it comes, -1 when it goes.
func (c *counts) add(names *packed.Names, g *packed.Outline, n int) {
	c.items += n
	if g.Traits&Held != 0 {
		c.held += n
	}
	open := g.Open()
	c.open += n * open
	if open > 0 && !g.AwaitsOthers() {
		c.ahead[layout.Name(names.Text(g.Collection))] += n
	}
	flying := false
	for r := range g.Runs {
		run := &g.Runs[r]
		plan := names.Plan(run.Plan)
		c.addRun(plan, g, run, n)
		if !slices.ContainsFunc(g.Runs[:r], func(o packed.OutlineRun) bool { return names.Plan(o.Plan).Name == plan.Name }) {
			c.with[plan.Name] += n
		}
		if g.Flies(run) {
			flying = true
			c.flights.workflows[plan.Name] += n
		}
	}
	if flying {
		c.flights.collections[layout.Name(names.Text(g.Collection))] += n
		c.flights.all += n
	}
}

func (c *counts) addRun(plan *state.Definition, g *packed.Outline, run *packed.OutlineRun, n int) {
	for uint64(len(c.plans)) <= run.Plan {
		c.plans = append(c.plans, planCount{})
	}
	p := &c.plans[run.Plan]
	if p.steps == nil {
		p.steps = make([]stepCount, len(plan.Steps))
	}
	p.runs += n
	for i := range p.steps {
		s, of := &g.Steps[run.From+i], &p.steps[i]
		if g.Counts(run, i) {
			of.by[s.Status] += n
		}
		switch {
		case g.Traits&Broken != 0 || s.Status != packed.StatusWaiting:
		case s.Person():
			of.person += n
		case s.Code == packed.CodeNone:
			of.ready += n
		}
		if s.Status == packed.StatusInProgress {
			c.flights.steps[StepID{Workflow: plan.Name, Step: layout.Name(plan.Steps[i].Name)}] += n
		}
	}
}

// merge adds what was counted apart.
func (c *counts) merge(o *counts) {
	c.items += o.items
	c.held += o.held
	c.open += o.open
	mergeInto(c.ahead, o.ahead)
	for len(c.plans) < len(o.plans) {
		c.plans = append(c.plans, planCount{})
	}
	for i, p := range o.plans {
		if p.steps == nil {
			continue // nothing there went by it
		}
		if c.plans[i].steps == nil {
			c.plans[i].steps = make([]stepCount, len(p.steps))
		}
		c.plans[i].runs += p.runs
		for k := range p.steps {
			to, from := &c.plans[i].steps[k], &p.steps[k]
			for s := range from.by {
				to.by[s] += from.by[s]
			}
			to.person += from.person
			to.ready += from.ready
		}
	}
	mergeInto(c.with, o.with)
	mergeInto(c.flights.steps, o.flights.steps)
	mergeInto(c.flights.workflows, o.flights.workflows)
	mergeInto(c.flights.collections, o.flights.collections)
	c.flights.all += o.flights.all
}

func mergeInto[K comparable](to, from map[K]int) {
	for k, n := range from {
		to[k] += n
	}
}

func (f *flights) claimed(c claimed, n int) {
	f.steps[c.StepID] += n
	if !c.flying {
		f.workflows[c.Workflow] += n
		f.collections[c.collection] += n
		f.all += n
	}
}

// Count is how the runs of one workflow stand at one step.
type Count struct {
	Step   layout.Name
	By     map[state.Status]int
	Person int // of the waiting ones: for a person
	Ready  int // of the waiting ones
}

// WorkflowCount is how many items and runs a workflow has, and where they stand.
type WorkflowCount struct {
	Workflow    string
	Items, Runs int
	Steps       []Count // as the definitions list them, those in use the longest first
}

// Counts tells how many items there are, how many are held, and how the runs of each
// workflow stand; it looks at no item.
func (v View) Counts() (items, held int, workflows []WorkflowCount) {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	by := map[string]*WorkflowCount{}
	var order []string
	_, plans := x.names.All()
	for i, p := range x.count.plans {
		if p.runs == 0 {
			continue
		}
		name := plans[i].Name
		w := by[name]
		if w == nil {
			w = &WorkflowCount{Workflow: name, Items: x.count.with[name]}
			by[name] = w
			order = append(order, name)
		}
		w.Runs += p.runs
		for k := range p.steps {
			w.add(layout.Name(plans[i].Steps[k].Name), &p.steps[k])
		}
	}
	slices.Sort(order)
	for _, name := range order {
		workflows = append(workflows, *by[name])
	}
	return x.count.items, x.count.held, workflows
}

func (w *WorkflowCount) add(step layout.Name, s *stepCount) {
	at := slices.IndexFunc(w.Steps, func(c Count) bool { return c.Step == step })
	if at < 0 {
		w.Steps = append(w.Steps, Count{Step: step, By: map[state.Status]int{}})
		at = len(w.Steps) - 1
	}
	to := &w.Steps[at]
	for i, n := range s.by {
		if n > 0 && i < len(packed.Statuses) {
			to.By[packed.Statuses[i]] += n
		}
	}
	to.Person += s.person
	to.Ready += s.ready
}
