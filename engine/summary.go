package engine

import (
	"slices"

	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Summary is what a run did.
type Summary struct {
	Admitted int                  `json:"admitted"`
	Rejected int                  `json:"rejected"`
	Steps    map[state.Status]int `json:"steps"`
	Failed   []Failure            `json:"failed"`       // steps that this run saw fail, and that stand so
	Before   int                  `json:"failedBefore"` // failed steps of earlier runs
	Waiting  int                  `json:"waiting"`      // steps that wait for a person
	Later    int                  `json:"later"`        // steps that wait for their time
	Growing  []string             `json:"growing"`      // drops not yet settled
	NotDone  []NotDone            `json:"notDone"`      // of the items the run was given
	Off      []StepControl        `json:"disabled"`     // steps that are out of the flow
	Stopped  []StepControl        `json:"stoppedBy"`    // steps whose thresholds stopped the run
}

// Failure is an item that needs someone.
type Failure struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	Workflow   string        `json:"workflow"`
	Step       layout.Name   `json:"step"`
	Kind       string        `json:"kind"`
	Message    string        `json:"message"`
	Optional   bool          `json:"optional,omitempty"`
	engine     layout.EngineID
}

// conclude looks over the index for what is left.
func (r *run) conclude() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.e.o.Now()
	r.summary.NotDone = r.notDone()
	r.summary.Off = r.e.stepControls(func(c StepControl) bool { return c.Status == state.StepDisabled })
	stopped := r.e.controls.stoppedBy()
	r.summary.Stopped = r.e.stepControls(func(c StepControl) bool { return slices.Contains(stopped, c.ref) })
	for it := range r.e.index.With(queue.Failed | queue.Broken | queue.Person | queue.Startable) {
		for _, f := range failures(it) {
			if f.engine == r.e.id {
				r.summary.Failed = append(r.summary.Failed, f)
			} else if !f.Optional {
				r.summary.Before++
			}
		}
		for i := range it.Runs {
			run := &it.Runs[i]
			for n := range run.Steps {
				why := run.Steps[n].Blocked
				switch {
				case it.Waits(run, n):
					r.summary.Waiting++
				case why != nil && !why.Until.IsZero() && now.Before(why.Until):
					r.summary.Later++
				}
			}
		}
	}
}

// failures lists what needs someone on one item.
func failures(it *queue.Item) (out []Failure) {
	if it.Broken != "" {
		return []Failure{{Item: it.ID, Collection: it.Collection, Label: it.Label, Kind: state.SystemKind, Message: it.Broken}}
	}
	for i := range it.Runs {
		run := &it.Runs[i]
		for n := range run.Steps {
			if s := &run.Steps[n]; s.Status == state.Failed {
				out = append(out, Failure{Item: it.ID, Collection: it.Collection, Label: it.Label, Workflow: run.Name,
					Step: layout.Name(run.Plan.Steps[n].Name), Kind: s.Kind, Message: s.Message, Optional: run.Plan.Steps[n].Optional, engine: s.Current.Engine})
			}
		}
	}
	return out
}
