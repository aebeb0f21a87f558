package index

import (
	"fmt"

	"bagpipe/engine/fault"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// CheckStepNames refuses names that no workflow has: an empty list would be no answer. "" is any.
func (ke *Keeper) CheckStepNames(workflow, step string) error {
	name, _ := state.Numbered(workflow)
	found := false
	for _, p := range ke.PlansInUse() {
		if workflow == "" || workflow == p.Name || name == p.Name {
			found = true
			if step == "" || p.Step(layout.Name(step)) != nil {
				return nil
			}
		}
	}
	if !found {
		return fault.New(fault.NotFound, fmt.Sprintf("no workflow %q", workflow), fault.Remedy{Verb: fault.ListWorkflows})
	}
	return fault.New(fault.NotFound, fmt.Sprintf("no step %q", step), fault.Remedy{Verb: fault.ShowWorkflow, Run: workflow})
}

// PlansInUse are the definitions in force, and those items run by.
func (ke *Keeper) PlansInUse() (plans []*state.Definition) {
	for _, w := range ke.settings.Current().Workflows {
		plans = append(plans, w.Def)
	}
	return append(plans, ke.index.Plans()...)
}
