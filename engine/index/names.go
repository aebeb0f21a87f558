package index

import (
	"cmp"
	"fmt"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// NoSuchError is a filter that names what the workspace does not have: an empty list
// would be no answer.
type NoSuchError struct{ What, Name, Hint string }

func (e *NoSuchError) Error() string { return fmt.Sprintf("no %s %q; %s", e.What, e.Name, e.Hint) }

// CheckStepNames refuses names that no workflow has; "" is any.
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
		return &NoSuchError{"workflow", workflow, "bagpipe workflow list shows them"}
	}
	return &NoSuchError{"step", step, "bagpipe workflow show " + cmp.Or(workflow, "NAME") + " lists them"}
}

// PlansInUse are the definitions in force, and those items run by.
func (ke *Keeper) PlansInUse() (plans []*state.Definition) {
	for _, w := range ke.settings.Current().Workflows {
		plans = append(plans, w.Def)
	}
	return append(plans, ke.index.Plans()...)
}
