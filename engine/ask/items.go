package ask

import (
	"slices"
	"time"

	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// ItemRow is one line of a listing.
type ItemRow struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	Lane       layout.Name   `json:"lane"`
	Created    time.Time     `json:"created"`
	Workflow   string        `json:"workflow"` // the one that tells most
	Status     state.Status  `json:"status"`
	Step       layout.Name   `json:"step,omitempty"` // the first that is not done
	Since      time.Time     `json:"since"`
	Why        string        `json:"why,omitempty"`
	Held       bool          `json:"held"`
	HeldBy     string        `json:"heldBy,omitempty"`
	Person     bool          `json:"waitsForPerson"`
	Others     int           `json:"otherWorkflows,omitempty"` // beside Workflow, that were not started again

	Kin
}

// Kin is an item's parent and how many children it has.
type Kin struct {
	Parent         layout.ItemID `json:"parent,omitempty"`
	Children       int           `json:"children,omitempty"`
	ChildrenFailed int           `json:"childrenFailed,omitempty"`
}

// row tells where an item stands in one line.
func (li *Lists) row(it *queue.Item) ItemRow {
	row := standing(it)
	li.countChildren(&row, it)
	return row
}

// standing is a row without its kin: it follows from the item alone.
func standing(it *queue.Item) (row ItemRow) {
	row = ItemRow{Item: it.ID, Collection: it.Collection, Label: it.Label, Lane: it.Lane, Created: it.Created, Held: it.Held, HeldBy: it.HeldBy, Since: it.Created}
	if it.Broken != "" {
		row.Status, row.Why = state.Failed, it.Broken
		return row
	}
	if it.Disposed() {
		row.Status, row.Since = state.Inactive, it.Milestones[state.Disposed]
		row.Why = "disposed of at " + layout.FormatTime(row.Since)
		return row
	}
	if len(it.Runs) == 0 {
		row.Status, row.Why = state.Waiting, "no workflow was started on it"
	}
	for r := range it.Runs {
		run := &it.Runs[r]
		at := firstOpen(it, run)
		row.Person = row.Person || at >= 0 && it.Waits(run, at)
		if !overtaken(it, r) {
			row.Others++
		}
		if run.Status == state.Inactive && overtaken(it, r) || row.Workflow != "" && telling(run.Status) < telling(row.Status) {
			continue
		}
		row.Workflow, row.Status, row.Step, row.Why = run.Name, run.Status, "", ""
		if at >= 0 {
			s := &run.Steps[at]
			row.Step, row.Since = layout.Name(run.Plan.Steps[at].Name), s.Since
			row.Why = Reason(s)
		} else {
			row.Since = lastMoved(run)
		}
	}
	row.Others = max(row.Others-1, 0)
	return row
}

// overtaken reports whether the same workflow was started on the item again.
func overtaken(it *queue.Item, r int) bool {
	return slices.ContainsFunc(it.Runs[r+1:], func(later queue.Run) bool { return later.Plan.Name == it.Runs[r].Plan.Name })
}

// lastMoved is when a step of a run came to stand as it does, the last of them.
func lastMoved(run *queue.Run) (last time.Time) {
	for i := range run.Steps {
		if s := run.Steps[i].Since; s.After(last) {
			last = s
		}
	}
	return last
}

// telling ranks the runs of an item by how much they tell of it; of equal ones the
// later counts.
func telling(s state.Status) int {
	return slices.Index([]state.Status{state.Completed, state.Inactive, state.Scheduled, state.InProgress, state.Failed}, s)
}

// firstOpen finds the step that tells most about a run: a failed one, else one
// in progress, else the first that is not done; -1 when all are.
func firstOpen(it *queue.Item, run *queue.Run) int {
	best, rank := -1, 0
	for i := range run.Steps {
		r := 0
		switch run.Steps[i].Status {
		case state.Failed:
			if r = 4; run.Plan.Steps[i].Tolerated() {
				r = 0
			}
		case state.InProgress:
			r = 3
		case state.Waiting:
			if r = 1; it.Waits(run, i) || run.Steps[i].Blocked == nil {
				r = 2
			}
		}
		if r > rank {
			best, rank = i, r
		}
	}
	return best
}

// Reason words how a step stands: the message of a failed one, else why it waits.
func Reason(s *queue.Step) string {
	switch {
	case s.Status == state.Failed:
		return s.Message
	case s.Blocked == nil:
		return "ready"
	}
	return s.Blocked.Text
}

// QueueRow is one step that is ready, or waits for a person.
type QueueRow struct {
	Item     layout.ItemID `json:"item"`
	Label    string        `json:"label"`
	Workflow string        `json:"workflow"`
	Step     layout.Name   `json:"step"`
	Lane     layout.Name   `json:"lane"`
	Since    time.Time     `json:"since"` // when it came to wait
	Person   bool          `json:"waitsForPerson"`
	Why      string        `json:"why,omitempty"` // the step is disabled
}
