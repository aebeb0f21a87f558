package state

import (
	"time"

	"bagpipe/engine/fault"
	"bagpipe/layout"
)

// Start puts a workflow on the item; the first step is completed by it.
type Start struct {
	Workflow  string // numbered
	Attempt   layout.AttemptKey
	At        time.Time
	NotBefore time.Time
	Runner    string
	Version   string                 // of the program
	By        string                 // a person
	StartedBy string                 // a step: WORKFLOW.N/STEP
	Skip      map[layout.Name]string // steps not needed, and why
}

func (e Start) apply(x *Execution, d *Definition) (Transition, error) {
	first := layout.Name(d.Steps[0].Name)
	illegal := &IllegalError{Event: "start", Item: x.Item, Workflow: e.Workflow}
	if x.Workflows[e.Workflow] != nil {
		illegal.Reason = "the workflow has been started already"
		return Transition{}, illegal
	}
	if base, _ := Instance(e.Workflow); base != d.Name {
		illegal.Reason = "the definition is that of workflow " + d.Name
		return Transition{}, illegal
	}
	for _, name := range x.Names() {
		if base, _ := Instance(name); base == d.Name && x.Workflows[name].Active() {
			illegal.Reason = name + " is not done; complete it"
			illegal.Remedies = []fault.Remedy{{Verb: fault.Deactivate, Item: x.Item, Run: name}}
			return Transition{}, illegal
		}
	}
	w := &Workflow{Name: d.Name, Digest: d.Digest, StartedWith: d.Digest, StartedBy: e.StartedBy, Created: e.At,
		NotBefore: e.NotBefore, Skip: e.Skip, Steps: map[layout.Name]*StepRecord{}}
	for i := range d.Steps {
		w.Steps[layout.Name(d.Steps[i].Name)] = &StepRecord{Attempts: map[layout.AttemptKey]Attempt{}}
	}
	w.Steps[first].Attempts[e.Attempt] = Attempt{State: Completed, Started: e.At, Ended: e.At, Runner: e.Runner, Version: e.Version, By: e.By}
	if x.Workflows == nil {
		x.Workflows = map[string]*Workflow{}
	}
	if len(x.Workflows) == 0 {
		x.reach(e.At, Registered) // by being an item
	}
	x.Workflows[e.Workflow] = w
	x.reach(e.At, layout.Name(d.Steps[0].Milestone))
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, Step: first, From: Waiting, To: Completed, Attempt: e.Attempt}, nil
}

// StartedFrom is the instance that a step started; "" when there is none.
func (x *Execution) StartedFrom(workflow string, step layout.Name) string {
	for _, name := range x.Names() {
		if x.Workflows[name].StartedBy == workflow+"/"+string(step) {
			return name
		}
	}
	return ""
}

// Starters lists the workflows, by their definitions' names, that led to an
// instance: it, the one that started it, and so on.
func (x *Execution) Starters(workflow string) (names []string) {
	for w := x.Workflows[workflow]; w != nil && len(names) <= len(x.Workflows); {
		names = append(names, w.Name)
		w = x.Workflows[instanceOf(w.StartedBy)]
	}
	return names
}

// instanceOf is the WORKFLOW.N of WORKFLOW.N/STEP.
func instanceOf(startedBy string) string {
	for i := range len(startedBy) {
		if startedBy[i] == '/' {
			return startedBy[:i]
		}
	}
	return ""
}
