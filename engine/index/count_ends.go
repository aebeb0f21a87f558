package index

import (
	"bagpipe/engine/control"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// noteEnds counts the ends of an item's steps that have thresholds.
func (ke *Keeper) NoteEnds(index *queue.Index, it *queue.Item) {
	for r := range it.Runs {
		run := &it.Runs[r]
		for i := range run.Steps {
			if len(run.Steps[i].Ends) == 0 {
				continue
			}
			step := &run.Plan.Steps[i]
			ref := control.RefOf(run.Name, layout.Name(step.Name))
			if ke.control.Count(ref, step, it.ID, run.Name, run.Steps[i].Ends) {
				for other := range index.With(queue.Ending) {
					ke.recount(ref, other)
				}
			}
		}
	}
}

// recount counts an item's ends of one step.
func (ke *Keeper) recount(ref state.Ref, it *queue.Item) {
	for r := range it.Runs {
		run := &it.Runs[r]
		if base, _ := state.Instance(run.Name); base != ref.Workflow {
			continue
		}
		for i := range run.Steps {
			if run.Plan.Steps[i].Name == string(ref.Step) && len(run.Steps[i].Ends) > 0 {
				ke.control.Count(ref, &run.Plan.Steps[i], it.ID, run.Name, run.Steps[i].Ends)
			}
		}
	}
}
