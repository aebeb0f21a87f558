package ask

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/act"
	"bagpipe/engine/control"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

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
	Remedy     Remedy        `json:"-"`
	Engine     layout.EngineID
}

// Failures lists what failed on one item, also what is tolerated; nothing of a
// workflow that was taken out of the queues.
func Failures(it *queue.Item) (out []Failure) {
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
				f.Tolerated, f.Engine = run.Plan.Steps[n].Tolerated(), s.Current.Engine
				out = append(out, f)
			}
		}
		if run.Status == state.Failed && run.Internal != "" {
			f := base
			f.Kind, f.Message = act.InternalKind, run.Internal
			out = append(out, f)
		}
	}
	return out
}

// TriedLater counts the items of which one step is tried again later, for one reason.
type TriedLater struct {
	Step   string    `json:"step"`            // WORKFLOW/STEP
	Reason string    `json:"reason"`          // of one of the items, as it stands
	Alike  bool      `json:"alike,omitempty"` // of others it has other figures
	Items  int       `json:"items"`
	Since  time.Time `json:"since"` // the earliest try that ended so, after which none ended otherwise
	Next   time.Time `json:"next"`  // the earliest
	Store  bool      `json:"store"` // the step needs the store, and the store is missing or full

	Failures int  `json:"failures,omitempty"` // in a row, the most of one item; 0: the robots asked to be called later
	Overdue  bool `json:"overdue"`            // since longer than OverdueAfter
}

// OverdueAfter is for how long what is tried again later is nobody's business.
const OverdueAfter = time.Hour

// triedSince is when the first of the last tries at a step ended, none of which did it.
func triedSince(s *queue.Step) time.Time {
	since := s.Since
	for _, t := range slices.Backward(s.Tried) {
		if t.State == state.Completed || t.State == state.Skipped {
			break
		}
		since = t.Ended
	}
	return since
}

// LaterGroups groups by step and reason.
type LaterGroups map[[2]string]*TriedLater

// Add counts the steps of a run that are tried again later.
func (l LaterGroups) Add(run *queue.Run, now time.Time, deposits func(*state.Step) bool) {
	deferring := (&steps.Later{}).Error()
	for i := range run.Steps {
		s, step := &run.Steps[i], &run.Plan.Steps[i]
		if why := s.Blocked; run.Status == state.Inactive || why == nil || why.Code != "retry" || !now.Before(why.Until) {
			continue
		}
		deferred := strings.HasPrefix(s.Message, deferring)
		// What differs in figures alone, as the room that each bag needs, is one reason.
		reason := strings.TrimPrefix(s.Message, deferring)
		key := [2]string{control.RefOf(run.Name, layout.Name(step.Name)).String(), Numbers.ReplaceAllString(reason, "#")}
		row := l[key]
		if row == nil {
			row = &TriedLater{Step: key[0], Reason: reason, Next: s.Blocked.Until, Store: deferred && deposits(step)}
			l[key] = row
		}
		if reason != row.Reason {
			row.Reason, row.Alike = min(row.Reason, reason), true
		}
		row.Items++
		if !deferred {
			row.Failures = max(row.Failures, s.Attempts)
		}
		if since := triedSince(s); row.Since.IsZero() || since.Before(row.Since) {
			row.Since = since
		}
		row.Overdue = now.Sub(row.Since) >= OverdueAfter
		if s.Blocked.Until.Before(row.Next) {
			row.Next = s.Blocked.Until
		}
	}
}

// Text is the reason, and that it has other figures elsewhere.
func (l TriedLater) Text() string {
	if l.Alike {
		return l.Reason + "; of others with other figures"
	}
	return l.Reason
}

// Rows gives the groups, by step.
func (l LaterGroups) Rows() []TriedLater {
	rows := make([]TriedLater, 0, len(l))
	for row := range maps.Values(l) {
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b TriedLater) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Reason, b.Reason))
	})
	return rows
}

// Overdue lists what has been tried again for longer than OverdueAfter.
func (ac *Activity) Overdue() []TriedLater {
	return slices.DeleteFunc(ac.listLater(ac.index.Loaded()), func(l TriedLater) bool { return !l.Overdue })
}

// Retrying lists what failed and is tried again by itself.
func (ac *Activity) Retrying(workflow string, step layout.Name) []TriedLater {
	base, _ := state.Instance(workflow)
	return slices.DeleteFunc(ac.listLater(ac.index.Loaded()), func(l TriedLater) bool {
		w, s, _ := strings.Cut(l.Step, "/")
		return l.Failures == 0 || workflow != "" && workflow != w && base != w || step != "" && string(step) != s
	})
}

// listLater lists what is tried again later, of the items in an index.
func (ac *Activity) listLater(index *queue.Index) []TriedLater {
	groups := LaterGroups{}
	if _, dated := ac.index.Loaded().NextDue(); dated {
		now := ac.ledger.Now()
		for it := range index.With(queue.Startable) {
			for r := range it.Runs {
				groups.Add(&it.Runs[r], now, ac.attempt.Deposits)
			}
		}
	}
	return groups.Rows()
}
