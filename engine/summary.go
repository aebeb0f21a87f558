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
	Step       layout.Name   `json:"step"` // "": the workflow, by an internal error, or the record
	Kind       string        `json:"kind"`
	Message    string        `json:"message"`
	Tolerated  bool          `json:"tolerated,omitempty"` // the item goes on
	engine     layout.EngineID
}

// itemRun is one run of a workflow on an item.
type itemRun struct {
	item layout.ItemID
	run  string
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
			if f.engine == r.e.id || f.Kind == internalKind && r.internal[itemRun{f.Item, f.Workflow}] {
				r.summary.Failed = append(r.summary.Failed, f)
			} else if !f.Tolerated {
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

// failures lists what failed on one item, also what is tolerated; nothing of a
// workflow that was taken out of the queues.
func failures(it *queue.Item) (out []Failure) {
	base := Failure{Item: it.ID, Collection: it.Collection, Label: it.Label}
	if it.Broken != "" {
		base.Kind, base.Message = state.SystemKind, it.Broken
		return []Failure{base}
	}
	for i := range it.Runs {
		run := &it.Runs[i]
		base.Workflow = run.Name
		if run.Status == state.Inactive {
			continue
		}
		for n := range run.Steps {
			if s := &run.Steps[n]; s.Status == state.Failed {
				f := base
				f.Step, f.Kind, f.Message = layout.Name(run.Plan.Steps[n].Name), s.Kind, s.Message
				f.Tolerated, f.engine = run.Plan.Steps[n].Tolerated(), s.Current.Engine
				out = append(out, f)
			}
		}
		if run.Status == state.Failed && run.Internal != "" {
			f := base
			f.Kind, f.Message = internalKind, run.Internal
			out = append(out, f)
		}
	}
	return out
}
