package ask

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/act"
	"bagpipe/engine/condition"
	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Filter narrows a listing; zero fields do not.
type Filter struct {
	Collection layout.Name
	Workflow   string // accession or accession.1
	Step       layout.Name
	Status     state.Status // of the step when Step is set, else of the workflow
	Lane       layout.Name
	Batch      string
	Milestone  layout.Name   // reached
	Message    string        // somewhere in the message of a step that failed; of Step when it is set
	Older      time.Duration // has not moved for so long
	Held       bool
	Parent     layout.ItemID // its children
	Where      *condition.Where
	More       *More  // nil: nothing
	Asked      *Asked // what Where and Page.Sort ask for; nil: it is not noted
}

// Page is which part of a listing is wanted, and in which order.
type Page struct {
	Sort  []string // paths; -PATH: the highest first; none: the oldest first
	From  int
	Limit int    // 0: all
	After string // a cursor, as Cursor gives it; "": from the beginning
}

func (f Filter) fits(it *queue.Item, now time.Time) bool {
	switch {
	case f.Collection != "" && f.Collection != it.Collection,
		f.Lane != "" && f.Lane != it.Lane,
		f.Batch != "" && f.Batch != it.Batch,
		f.Held && !it.Held,
		f.Parent != "" && (it.Parent == nil || it.Parent.Item != f.Parent):
		return false
	}
	if _, reached := it.Milestones[f.Milestone]; f.Milestone != "" && !reached {
		return false
	}
	if f.Workflow == "" && f.Step == "" && f.Status == "" && f.Message == "" && f.Older == 0 {
		return true
	}
	for r := range it.Runs {
		if f.fitsRun(it, &it.Runs[r], now) {
			return true
		}
	}
	if len(it.Runs) > 0 || f.Step != "" || f.Workflow != "" {
		return false
	}
	if f.Message != "" && !strings.Contains(it.Broken, f.Message) || f.Older > 0 && now.Sub(it.Created) < f.Older {
		return false
	}
	if it.Broken != "" {
		return f.Status == state.Failed || f.Status == ""
	}
	return f.Status == state.Waiting || f.Status == "" && f.Message == ""
}

// fitsRun tells whether a run is of the workflow, stands as asked for, and has the
// step as asked for.
func (f Filter) fitsRun(it *queue.Item, run *queue.Run, now time.Time) bool {
	if f.Workflow != "" && f.Workflow != run.Plan.Name && f.Workflow != run.Name {
		return false
	}
	if f.Step != "" {
		i := slices.IndexFunc(run.Plan.Steps, func(s state.Step) bool { return s.Name == string(f.Step) })
		return i >= 0 && f.fitsStep(&run.Steps[i], now)
	}
	if f.Status != "" && run.Status != f.Status {
		return false
	}
	if f.Message == "" && f.Older == 0 {
		return true
	}
	one := f
	one.Status = ""
	if f.Older > 0 && f.Message == "" { // where the run stands
		at := firstOpen(it, run)
		if at < 0 { // done: it fits where it is asked for as such
			return f.Status != "" && now.Sub(lastMoved(run)) >= f.Older
		}
		return one.fitsStep(&run.Steps[at], now)
	}
	return slices.ContainsFunc(run.Steps, func(s queue.Step) bool { return s.Status == state.Failed && one.fitsStep(&s, now) })
}

func (f Filter) fitsStep(s *queue.Step, now time.Time) bool {
	return (f.Status == "" || s.Status == f.Status) && (f.Message == "" || s.Status == state.Failed && strings.Contains(s.Message, f.Message)) &&
		(f.Older == 0 || !s.Since.IsZero() && now.Sub(s.Since) >= f.Older)
}

// traits are what an item must have one of to fit; 0: nothing.
func (f Filter) traits() queue.Trait {
	switch {
	case f.Held:
		return queue.Held
	case f.Parent != "":
		return queue.Kin
	case f.Message != "" && f.Step == "", f.Status == state.Failed:
		return queue.Failed | queue.Broken
	case f.Status == state.InProgress && f.Step != "":
		return queue.Running
	}
	return 0
}

// CheckFilter refuses names that the workspace does not have.
func (li *Lists) CheckFilter(f Filter) error {
	if f.Workflow != "" || f.Step != "" {
		if err := li.index.CheckStepNames(f.Workflow, string(f.Step)); err != nil {
			return err
		}
	}
	if _, number := state.Instance(f.Workflow); number > 0 && li.isRun(f.Workflow) && !li.index.Loaded().KnowsName(f.Workflow) {
		base, _ := state.Numbered(f.Workflow)
		return fault.New(fault.NotFound, fmt.Sprintf("no workflow %q; no item went through %s so often", f.Workflow, base), fault.Remedy{Verb: fault.ListRuns, Run: base})
	}
	var known queue.Names
	if f.Collection != "" || f.Lane != "" || f.Batch != "" { // all items are looked at
		known = li.index.Loaded().Known()
	}
	has := func(what, name string, in []string, also []string, more string, remedies ...fault.Remedy) error {
		if name == "" || slices.Contains(in, name) || slices.Contains(also, name) {
			return nil
		}
		return fault.New(fault.NotFound, fmt.Sprintf("no %s %q", what, name)+more, remedies...)
	}
	s := li.settings.Current().Settings
	var collections, milestones []string
	for c := range s.Collections {
		collections = append(collections, c)
	}
	if _, err := os.Stat(li.ledger.Path(layout.InboxDir + "/" + string(f.Collection))); err == nil {
		collections = append(collections, string(f.Collection))
	}
	for _, p := range li.index.PlansInUse() {
		for i := range p.Steps {
			milestones = append(milestones, p.Steps[i].Milestone)
		}
	}
	if f.Milestone != "" && !slices.Contains(milestones, string(f.Milestone)) {
		reached, err := li.Milestones(Filter{}, "", "")
		if err != nil {
			return err
		}
		for _, m := range reached.Milestones {
			milestones = append(milestones, string(m.Milestone))
		}
	}
	return cmp.Or(
		has("collection", string(f.Collection), known.Collections, collections, "", fault.Remedy{Verb: fault.ListCollections}),
		has("lane", string(f.Lane), known.Lanes, s.LaneNames(), "; the lanes are "+strings.Join(s.LaneNames(), ", ")),
		has("batch", f.Batch, known.Batches, nil, "", fault.Remedy{Verb: fault.ListBatches}),
		has("milestone", string(f.Milestone), nil, milestones, "", fault.Remedy{Verb: fault.ListMilestones}),
	)
}

// asksFor tells whether items at a step, WORKFLOW/STEP, can fit.
func (f Filter) asksFor(ref string) bool {
	workflow, step, _ := strings.Cut(ref, "/")
	name, _ := state.Numbered(f.Workflow)
	return (f.Workflow == "" || f.Workflow == workflow || name == workflow) && (f.Step == "" || string(f.Step) == step)
}

// selected gives the items that fit, oldest first.
func (li *Lists) selected(f Filter) (iter.Seq[*queue.Item], error) {
	items, _, err := li.selectedAfter(f, nil, 0)
	return items, err
}

// selectedAfter is selected of the items that come after one; nil: of all, of which the table, if it is asked, leaves out
// the first skip.
func (li *Lists) selectedAfter(f Filter, last *queue.Item, skip int) (items iter.Seq[*queue.Item], skipped int, err error) {
	if t, w, ok, err := li.tallied(f, false); ok || err != nil {
		if last != nil {
			skip = 0
		}
		return t.list(li.index.Loaded(), w, last, skip), skip, err
	}
	if err := li.CheckFilter(f); err != nil {
		return nil, 0, err
	}
	a, err := li.Asker(f.Asked)
	if err != nil {
		return nil, 0, err
	}
	li.index.Loaded().Settle(a.Now)
	all := li.index.Loaded().With(f.traits())
	if last != nil {
		all = li.index.Loaded().After(f.traits(), last)
	}
	c := countingOf(li)
	return func(yield func(*queue.Item) bool) {
		for it := range all {
			if f.fits(it, a.Now) && (f.More == nil || f.More.fits(&c, it)) && (f.Where == nil || a.holds(f.Where, it)) && !yield(it) {
				return
			}
		}
	}, 0, nil
}

// Items lists items.
func (li *Lists) Items(f Filter, page Page) ([]ItemRow, error) {
	rows := []ItemRow{}
	err := li.each(f, page, func(it *queue.Item) bool {
		rows = append(rows, li.row(it))
		return true
	})
	return rows, err
}

// Fitting tells of single items whether they fit, as they stand then; all that is committed by now is known of them.
func (li *Lists) Fitting(ctx context.Context, f Filter) (func(item string) bool, error) {
	if err := li.ledger.Store.Refresh(ctx); err != nil {
		return nil, err
	}
	if err := li.CheckFilter(f); err != nil {
		return nil, err
	}
	a, err := li.Asker(f.Asked)
	if err != nil {
		return nil, err
	}
	c := countingOf(li)
	return func(item string) bool {
		id, err := layout.ParseItemID(item)
		if err != nil {
			return false
		}
		it := li.index.Loaded().Item(id)
		return it != nil && f.fits(it, a.Now) && (f.More == nil || f.More.fits(&c, it)) && (f.Where == nil || a.holds(f.Where, it))
	}, nil
}

// early tells whether what a step that waits requires is not done, or its workflow is
// inactive.
func early(it *queue.Item, run *queue.Run, i int, now time.Time) bool {
	if why := it.BlockedAt(run, i, now); why != nil && slices.Contains([]string{"requires", "inactive", "version"}, why.Code) {
		return true
	}
	// A hold, or a failure elsewhere, is told before what is required.
	return slices.ContainsFunc(run.Plan.Prerequisites(i), func(p int) bool {
		status := run.Steps[p].Status
		return status != state.Completed && status != state.Skipped && (status != state.Failed || !run.Plan.Steps[p].Tolerated())
	})
}

// Steps lists the steps that fit f, whose Step must be set, as they are; of several runs
// of a workflow on an item, the latest.
func (li *Lists) Steps(f Filter) ([]act.SeenStep, error) {
	items, err := li.selected(f)
	if err != nil {
		return nil, err
	}
	var seen []act.SeenStep
	now := li.ledger.Now()
	for it := range items {
		if it.Broken != "" {
			continue
		}
		for r := len(it.Runs) - 1; r >= 0; r-- {
			run := &it.Runs[r]
			if !f.fitsRun(it, run, now) {
				continue
			}
			for i := range run.Steps {
				if run.Plan.Steps[i].Name == string(f.Step) {
					seen = append(seen, act.SeenStep{StepRef: ledger.StepRef{Item: it.ID, Workflow: run.Name, Step: f.Step}, Status: run.Steps[i].Status, Attempt: run.Steps[i].Current, Early: early(it, run, i, now)})
				}
			}
			break
		}
	}
	return seen, nil
}
