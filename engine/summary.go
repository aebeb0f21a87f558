package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
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
	Tried    []TriedLater         `json:"triedLater"`   // those of them that failed, or asked for it, and why
	Growing  []string             `json:"growing"`      // drops left in the inbox, and why
	Barred   int                  `json:"barred"`       // of those, drops that wait for a person
	Mishaps  []string             `json:"mishaps"`      // errors at a drop, an item or a step, which the rest went on past
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
	later := laterGroups{}
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
			later.add(run, now, r.e.deposits)
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
	r.summary.Tried = later.rows()
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

// TriedLater counts the items of which one step is tried again later, for one reason.
type TriedLater struct {
	Step   string    `json:"step"` // WORKFLOW/STEP
	Reason string    `json:"reason"`
	Items  int       `json:"items"`
	Next   time.Time `json:"next"`  // the earliest
	Store  bool      `json:"store"` // the step needs the store, and the store is missing or full
}

// laterGroups groups by step and reason.
type laterGroups map[[2]string]*TriedLater

// add counts the steps of a run that are tried again later.
func (l laterGroups) add(run *queue.Run, now time.Time, deposits func(*state.Step) bool) {
	deferring := (&steps.Later{}).Error()
	for i := range run.Steps {
		s, step := &run.Steps[i], &run.Plan.Steps[i]
		if why := s.Blocked; run.Status == state.Inactive || why == nil || why.Code != "retry" || !now.Before(why.Until) {
			continue
		}
		deferred := strings.HasPrefix(s.Message, deferring)
		key := [2]string{refOf(run.Name, layout.Name(step.Name)).String(), strings.TrimPrefix(s.Message, deferring)}
		row := l[key]
		if row == nil {
			row = &TriedLater{Step: key[0], Reason: key[1], Next: s.Blocked.Until, Store: deferred && deposits(step)}
			l[key] = row
		}
		row.Items++
		if s.Blocked.Until.Before(row.Next) {
			row.Next = s.Blocked.Until
		}
	}
}

// rows gives the groups, by step.
func (l laterGroups) rows() []TriedLater {
	rows := make([]TriedLater, 0, len(l))
	for row := range maps.Values(l) {
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b TriedLater) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Reason, b.Reason))
	})
	return rows
}

// listLater lists what is tried again later, of the items in an index.
func (e *Engine) listLater(index *queue.Index) []TriedLater {
	groups := laterGroups{}
	if _, dated := e.index.NextDue(); dated {
		now := e.o.Now()
		for it := range index.With(queue.Startable) {
			for r := range it.Runs {
				groups.add(&it.Runs[r], now, e.deposits)
			}
		}
	}
	return groups.rows()
}
