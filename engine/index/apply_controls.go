package index

import (
	"time"

	"bagpipe/engine/control"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Recontrol brings the items in the index in line with controls that came into force.
func (ke *Keeper) Recontrol() {
	ke.noting.Lock()
	defer ke.noting.Unlock()
	ke.mu.Lock()
	index := ke.index
	ke.mu.Unlock()
	if index != nil {
		applyControls(ke.control, index)
	}
}

// control brings the items in the index in line with the controls.
func applyControls(panel *control.Panel, index *queue.Index) {
	c := panel.Current()
	for _, id := range index.WithSteps(func(s queue.StepID) bool { return c.Disabled(state.Ref{Workflow: s.Workflow, Step: s.Step}) }) {
		if it := index.Item(id); it != nil {
			if now := controlled(panel, index, it); now != it {
				index.Put(now)
			}
		}
	}
}

// OfferTrials puts the items of steps that may be tried into the queue again: one
// whose claim was refused for another's trial is not handed out by itself.
func (ke *Keeper) OfferTrials() {
	for _, c := range ke.control.Current().Steps {
		if c.Status == state.StepDisabled && !c.Until.IsZero() && !ke.ledger.Now().Before(c.Until) {
			ke.Recontrol()
			return
		}
	}
}

// controlled is an item as the controls have it. A disabled optional step is not
// blocked by them: it is skipped when it could start.
func controlled(panel *control.Panel, index *queue.Index, it *queue.Item) *queue.Item {
	c := panel.Current()
	return it.Controlled(func(run *queue.Run, i int) *state.Reason {
		step := &run.Plan.Steps[i]
		set, listed := c.Steps[control.RefOf(run.Name, layout.Name(step.Name))]
		if !listed || set.Status != state.StepDisabled || step.Optional {
			return nil
		}
		open, why := set.Open(it.ID, run.Name, time.Time{}, func(t *state.Trial) bool {
			return Stands(index, t, layout.Name(step.Name))
		})
		if open {
			return nil
		}
		reason := &state.Reason{Code: control.DisabledCode, Text: why}
		if set.Trial == nil || !Stands(index, set.Trial, layout.Name(step.Name)) {
			reason.Until = set.Until
		}
		return reason
	})
}

// Stands tells whether a trial's item goes on with its step.
func Stands(index *queue.Index, t *state.Trial, step layout.Name) bool {
	it := index.Item(t.Item)
	if it == nil || it.Broken != "" || it.Held {
		return false
	}
	for run, i := range it.Steps() {
		if s := &run.Steps[i]; run.Name == t.Workflow && run.Plan.Steps[i].Name == string(step) {
			return control.GoesOn(s.Status, s.Own())
		}
	}
	return false
}

// trialMoved looks, after an item changed, whether it is a trial that does not
// stand any more; then others may be tried.
func trialMoved(panel *control.Panel, index *queue.Index, id layout.ItemID) {
	for ref, c := range panel.Current().Steps {
		if c.Status == state.StepDisabled && c.Trial != nil && c.Trial.Item == id && !Stands(index, c.Trial, ref.Step) {
			applyControls(panel, index)
			return
		}
	}
}
