package state

import (
	"fmt"
	"slices"
	"strings"

	"bagpipe/layout"
)

// any reports whether some attempt is as asked.
func (x *Execution) any(is func(workflow string, step layout.Name, k layout.AttemptKey, a Attempt) bool) bool {
	for name, w := range x.Workflows {
		for step, s := range w.Steps {
			for k, a := range s.Attempts {
				if is(name, step, k, a) {
					return true
				}
			}
		}
	}
	return false
}

func (x *Execution) attempt(workflow string, step layout.Name, k layout.AttemptKey) (Attempt, bool) {
	_, s := x.Find(workflow, step)
	if s == nil {
		return Attempt{}, false
	}
	a, there := s.Attempts[k]
	return a, there
}

// Progressed reports whether now has a completed attempt that before has not: only
// with one may the content have changed.
func Progressed(before, now *Execution) bool {
	return now.any(func(workflow string, step layout.Name, k layout.AttemptKey, a Attempt) bool {
		was, there := before.attempt(workflow, step, k)
		return a.State == Completed && (!there || was.State != Completed)
	})
}

// Forged says which attempts in engine's name are in now as engine never wrote
// them, before being all that it wrote: each attempt has one writer.
func Forged(before, now *Execution, engine layout.EngineID) (breaches []string) {
	now.any(func(workflow string, step layout.Name, k layout.AttemptKey, a Attempt) bool {
		was, there := before.attempt(workflow, step, k)
		if k.Engine == engine && (!there || was.State != a.State) {
			breaches = append(breaches, fmt.Sprintf("added or ended attempt %s (%s) of %s/%s in the name of the engine that runs here", k, a.State, workflow, step))
		}
		return false
	})
	slices.Sort(breaches)
	return breaches
}

// Answered reports whether a hold was placed in answer to the commit.
func (x *Execution) Answered(commit string) bool {
	for _, i := range x.Intents {
		if i.Kind == HoldIntent && string(i.Target) == commit {
			return true
		}
	}
	return false
}

// Recompute writes the statuses of all workflows whose definition is there.
func (x *Execution) Recompute(plans Plans) {
	for name, w := range x.Workflows {
		if d := plans(w.Digest); d != nil {
			x.Compute(name, d)
		}
	}
}

// Breaches joins what was found into one sentence, bounded.
func Breaches(list []string) string {
	const most = 5
	if len(list) > most {
		list = append(list[:most:most], fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(list, "; ")
}
