package index

import (
	"bagpipe/engine/control"
	"bagpipe/engine/queue"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// NoteEnds counts the ends of an item's steps that have thresholds.
func (ke *Keeper) NoteEnds(index *queue.Index, it *queue.Item) {
	for run, i := range it.Steps() {
		if len(run.Steps[i].Ends) == 0 {
			continue
		}
		step := &run.Plan.Steps[i]
		ref := control.RefOf(run.Name, layout.Name(step.Name))
		if ke.control.Count(ref, step, it.ID, run.Name, run.Steps[i].Ends, own(ke)) {
			for other := range index.With(queue.Ending) {
				recount(ke, ref, other)
			}
		}
	}
}

// recount counts an item's ends of one step.
func recount(ke *Keeper, ref state.Ref, it *queue.Item) {
	for run, i := range it.Steps() {
		if step := &run.Plan.Steps[i]; len(run.Steps[i].Ends) > 0 && control.RefOf(run.Name, layout.Name(step.Name)) == ref {
			ke.control.Count(ref, step, it.ID, run.Name, run.Steps[i].Ends, own(ke))
		}
	}
}

// CountDeployed reads the items again whose ends a threshold of the settings counts and whose
// ends are not known: they came into the index before that was in force, or from a checkpoint
// of such a time.
func (ke *Keeper) CountDeployed(c *settings.Snapshot) {
	ke.mu.Lock()
	index := ke.index
	ke.mu.Unlock()
	if index == nil || !settings.DeploysThresholds(c.Settings) {
		return
	}
	ke.noting.Lock()
	defer ke.noting.Unlock()
	var lacking []layout.ItemID
	for it := range index.Items() {
		if lacksEnds(c.Settings, it) {
			lacking = append(lacking, it.ID)
		}
	}
	v, err := ke.ledger.Store.Known()
	if err != nil {
		ke.ledger.Log.Error("read the tip", "err", err)
		return
	}
	for _, id := range lacking {
		ke.reload(index, v, &noted{id: id})
	}
}

// lacksEnds reports whether the ends of an item's step are not known that a threshold of the
// settings counts.
func lacksEnds(s *settings.Settings, it *queue.Item) bool {
	for run, i := range it.Steps() {
		at, step := &run.Steps[i], &run.Plan.Steps[i]
		if at.Attempts == 0 || len(at.Ends) > 0 || step.Threshold != nil || at.Status == state.Waiting || at.Status == state.InProgress {
			continue
		}
		if t := s.Deployed(run.Plan.Name, step).Threshold; t != nil && t.Count > 0 {
			return true
		}
	}
	return false
}

// noteDeployed adds the ends of steps whose thresholds the settings set, and not their
// definitions.
func noteDeployed(ke *Keeper, it *queue.Item, x *state.Execution) {
	s := ke.settings.Current().Settings
	if !settings.DeploysThresholds(s) {
		return
	}
	for run, i := range it.Steps() {
		step := &run.Plan.Steps[i]
		if t := s.Deployed(run.Plan.Name, step).Threshold; step.Threshold == nil && t != nil && t.Count > 0 {
			run.Steps[i].Ends = queue.EndsOf(x, run.Name, layout.Name(step.Name))
		}
	}
}
