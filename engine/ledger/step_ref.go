package ledger

import (
	"fmt"

	"bagpipe/engine/fault"
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
	if why := OfBefore(rec, name); why != nil {
		return "", why
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
		return "", NoInstance(ref.Item, ref.Workflow)
	}
	found := ""
	for _, name := range rec.Execution.Names() {
		if _, s := rec.Execution.Find(name, ref.Step); s != nil {
			found = name
		}
	}
	if found == "" {
		return "", fault.New(fault.NotFound, fmt.Sprintf("item %s has no step %s", ref.Item.Short(), ref.Step), fault.Remedy{Verb: fault.Show, Item: ref.Item})
	}
	return found, nil
}

// IsRefused reports whether err is the answer of the state or of the item rather than a
// failure of the machine.
func IsRefused(err error) bool { return fault.Is(err, fault.Refused) || fault.Is(err, fault.NotFound) }
