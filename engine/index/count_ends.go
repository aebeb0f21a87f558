package index

import (
	"bagpipe/engine/control"
	"bagpipe/engine/queue"
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
		if ke.control.Count(ref, step, it.ID, run.Name, run.Steps[i].Ends) {
			for other := range index.With(queue.Ending) {
				recount(ke.control, ref, other)
			}
		}
	}
}

// recount counts an item's ends of one step.
func recount(panel *control.Panel, ref state.Ref, it *queue.Item) {
	for run, i := range it.Steps() {
		if step := &run.Plan.Steps[i]; len(run.Steps[i].Ends) > 0 && control.RefOf(run.Name, layout.Name(step.Name)) == ref {
			panel.Count(ref, step, it.ID, run.Name, run.Steps[i].Ends)
		}
	}
}
