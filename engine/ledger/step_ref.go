package ledger

import (
	"errors"
	"fmt"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// StepRef names a step of an item; Workflow may be "" when only one instance on
// the item has the step, or when the latest one is meant.
type StepRef struct {
	Item     layout.ItemID
	Workflow string
	Step     layout.Name
}

// Resolve fills in the workflow instance, which must not be over with a version that
// has been replaced.
func (l *Ledger) Resolve(rec *Record, ref StepRef) (string, error) {
	name, err := l.Instance(rec, ref)
	if err != nil {
		return "", err
	}
	if why := OfBefore(rec, name); why != "" {
		return "", errors.New(why)
	}
	return name, nil
}

func (l *Ledger) Instance(rec *Record, ref StepRef) (string, error) {
	if ref.Workflow != "" {
		if rec.Execution.Workflows[ref.Workflow] != nil {
			return ref.Workflow, nil
		}
		if latest := rec.Execution.Latest(ref.Workflow); latest != "" {
			return latest, nil
		}
		return "", fmt.Errorf("item %s has no workflow %s", ref.Item.Short(), ref.Workflow)
	}
	found := ""
	for _, name := range rec.Execution.Names() {
		if _, s := rec.Execution.Find(name, ref.Step); s != nil {
			found = name
		}
	}
	if found == "" {
		return "", fmt.Errorf("item %s has no step %s; bagpipe show %s lists them", ref.Item.Short(), ref.Step, ref.Item.Short())
	}
	return found, nil
}

// IsRefused tells whether err is the state's or the item's answer rather than a
// fault of the machine.
func IsRefused(err error) bool {
	var illegal *state.IllegalError
	var none *NoItemError
	return errors.As(err, &illegal) || errors.As(err, &none)
}
