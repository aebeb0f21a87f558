package settings

import (
	"fmt"
	"slices"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Startable finds the definition in force of a workflow, and what its start skips.
func (so *Source) Startable(workflow string) (f *ledger.Definition, skip func(*ledger.Record) map[layout.Name]string, err error) {
	if f = so.Current().Workflows[workflow]; f == nil {
		return nil, nil, ledger.NoWorkflow(workflow)
	}
	return f, func(rec *ledger.Record) map[layout.Name]string { return so.NotAskedOf(rec, f.Def) }, nil
}

// NotAskedOf lists the steps on request that the item's collection does not ask
// for.
func (so *Source) NotAskedOf(rec *ledger.Record, d *state.Definition) map[layout.Name]string {
	c := rec.Manifest.Collection
	return NotAsked(d, c, so.Current().Settings.Collection(c).Approvals)
}

// NotAsked lists the steps that are done on request only and that the collection
// does not ask for.
func NotAsked(d *state.Definition, collection layout.Name, approvals []string) map[layout.Name]string {
	var skip map[layout.Name]string
	for _, s := range d.Steps {
		if !s.OnRequest || slices.Contains(approvals, s.Name) {
			continue
		}
		if skip == nil {
			skip = map[layout.Name]string{}
		}
		skip[layout.Name(s.Name)] = fmt.Sprintf("collection %s does not ask for %s (approvals: in bagpipe.yaml)", collection, s.Name)
	}
	return skip
}
