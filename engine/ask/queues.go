package ask

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/condition"
	"bagpipe/engine/fault"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// QueueAsk is what is asked of a queue.
type QueueAsk struct {
	Which string // a named queue; WORKFLOW, WORKFLOW/STEP or /STEP; "": all
	Where *condition.Where
	For   string // Robots or People; "": both
	Limit int    // 0: all
	// Within are the collections that the asker reaches; none: all.
	Within []layout.Name
	Lane   layout.Name
	Done   []state.Ref // steps that must be completed or skipped on the item
	Asked  *Asked      // nil: it is not noted
}

func (ask QueueAsk) narrows() bool {
	return len(ask.Within) > 0 || ask.Lane != "" || len(ask.Done) > 0
}

func (ask QueueAsk) fits(it *queue.Item) bool {
	return (len(ask.Within) == 0 || slices.Contains(ask.Within, it.Collection)) && (ask.Lane == "" || ask.Lane == it.Lane) &&
		!slices.ContainsFunc(ask.Done, func(ref state.Ref) bool { return !doneOn(it, ref) })
}

// doneOn reports whether a step is completed or skipped in the latest run of its workflow.
func doneOn(it *queue.Item, ref state.Ref) bool {
	for r := range slices.Backward(it.Runs) {
		run := &it.Runs[r]
		if run.Plan.Name != ref.Workflow {
			continue
		}
		i := slices.IndexFunc(run.Plan.Steps, func(s state.Step) bool { return s.Name == string(ref.Step) })
		return i >= 0 && (run.Steps[i].Status == state.Completed || run.Steps[i].Status == state.Skipped)
	}
	return false
}

// For whom steps are ready or wait.
const (
	Robots = "robots"
	People = "people"
)

// AskedQueue is the queue asked for; one that has no name is made up.
func (qu *QueueLists) AskedQueue(which string) (*queue.Named, error) {
	if which == "" {
		return &queue.Named{}, nil
	}
	if q := qu.settings.Current().Queues[which]; q != nil {
		return q, nil
	}
	workflow, step, isStep := strings.Cut(which, "/")
	if err := qu.index.CheckStepNames(workflow, step); err != nil { // "nothing is ready" would be no answer
		if _, bad := layout.ParseName(which); bad == nil && !isStep {
			return nil, fault.New(fault.NotFound, fmt.Sprintf("no queue or workflow %q; for a step write WORKFLOW/STEP or /STEP", which),
				fault.Remedy{Verb: fault.ListQueues})
		}
		return nil, err
	}
	name, number := state.Numbered(workflow)
	q := &queue.Named{Steps: []string{strings.TrimSuffix(which, "/")}}
	if number != "" && qu.lists.isRun(workflow) { // accession.2
		q.Steps = []string{strings.TrimSuffix(name+"/"+step, "/")}
	}
	return q, nil
}

// isRun tells a numbered workflow from one whose own name ends so.
func (li *Lists) isRun(workflow string) bool {
	_, number := state.Instance(workflow)
	return number > 0 && li.settings.Current().Workflows[workflow] == nil
}

// Queue lists what is ready in the order it would be taken, or in the order of the named
// queue, then what waits for people, then what only waits as its step is disabled.
func (qu *QueueLists) Queue(ask QueueAsk) ([]QueueRow, error) {
	q, err := qu.AskedQueue(ask.Which)
	if err != nil {
		return nil, err
	}
	a, err := qu.lists.Asker(nil)
	if err != nil {
		return nil, err
	}
	asked := a
	asked.asked = ask.Asked
	limit := ask.Limit
	if q.Limit > 0 && (limit == 0 || q.Limit < limit) {
		limit = q.Limit
	}
	run, _, _ := strings.Cut(ask.Which, "/")
	question := queue.Question{Step: q.Wants, Limit: limit, Brief: len(q.Order) == 0}
	if q.Condition() != nil || ask.Where != nil || ask.narrows() || qu.lists.isRun(run) {
		question.Entry = func(en queue.Entry) bool {
			return ask.fits(en.Item) && (!qu.lists.isRun(run) || en.Run == run) && a.holds(q.Condition(), en.Item) && asked.holds(ask.Where, en.Item)
		}
	}
	if len(q.Order) > 0 {
		question.Limit = 0
	}
	if ask.For != "" {
		question.Limit = 0 // the others do not count
	}
	ready, people := qu.index.Loaded().Queue(a.Now, question)
	switch ask.For {
	case Robots:
		people = nil
	case People:
		ready = nil
	}
	for _, list := range [][]queue.Entry{ready, people} {
		asked.order(list, q.Order)
	}
	rows := make([]QueueRow, 0, len(ready)+len(people))
	for _, en := range ready {
		rows = append(rows, qu.queueRow(en, false))
	}
	for _, en := range people {
		rows = append(rows, qu.queueRow(en, true))
	}
	most := math.MaxInt
	switch {
	case ask.For == People:
		most = 0 // disabled are the steps of robots, for a person can do theirs
	case limit > 0:
		most = limit - len(rows)
	}
	rows = append(rows, qu.offRows(most, func(en queue.Entry) bool {
		return q.Wants(en.ID()) && (question.Entry == nil || question.Entry(en))
	})...)
	if limit > 0 && len(rows) > limit {
		rows = rows[:limit]
	}
	return rows, nil
}

func (qu *QueueLists) queueRow(en queue.Entry, person bool) QueueRow {
	return QueueRow{Item: en.Item.ID, Label: en.Item.Label, Workflow: en.Run, Step: en.Step, Lane: en.Item.Lane, Since: waitsSince(en), Person: person}
}

// waitsSince is when the step came to wait as it does.
func waitsSince(en queue.Entry) time.Time {
	if !en.Since.IsZero() {
		return en.Since
	}
	for r := range en.Item.Runs {
		if run := &en.Item.Runs[r]; run.Name == en.Run && !run.Steps[en.N].Since.IsZero() {
			return run.Steps[en.N].Since
		}
	}
	return en.Item.Created
}

// order sorts entries by what stands at paths; those alike stay as they are. What is
// not there comes last.
func (a asker) order(list []queue.Entry, by []string) {
	if len(by) == 0 {
		return
	}
	type sortable struct {
		entry queue.Entry
		keys  []gjson.Result
	}
	all := make([]sortable, len(list))
	for i, en := range list {
		all[i].entry = en
		all[i].keys = a.keysOf(en.Item, by)
	}
	slices.SortStableFunc(all, func(x, y sortable) int { return compareKeys(by, x.keys, y.keys) })
	for i := range all {
		list[i] = all[i].entry
	}
}

// keysOf is what stands at paths of an item.
func (a asker) keysOf(it *queue.Item, by []string) []gjson.Result {
	values := a.asked.note(a.lists.ValuesOf(a.R, it, a.Facets))
	keys := make([]gjson.Result, len(by))
	for i, p := range by {
		keys[i] = a.sortKey(it, values, strings.TrimPrefix(p, "-"))
	}
	return keys
}

// compareKeys compares what stands at paths.
func compareKeys(by []string, a, b []gjson.Result) int {
	for i, p := range by {
		if c := compareValues(a[i], b[i], strings.HasPrefix(p, "-")); c != 0 {
			return c
		}
	}
	return 0
}

// OrderOf is the order that a named queue has of its own.
func (qu *QueueLists) OrderOf(q *queue.Named) queue.Order {
	return queue.Order{
		Keys: func(en queue.Entry) []gjson.Result {
			v, err := qu.ledger.Store.Known() // it is asked of everything that is ready
			if err != nil {                   // nothing is there until the branch can be read again
				return make([]gjson.Result, len(q.Order))
			}
			return asker{qu.lists, v, qu.index.FacetsBegun(), qu.ledger.Now(), nil}.keysOf(en.Item, q.Order)
		},
		Compare: func(a, b []gjson.Result) int { return compareKeys(q.Order, a, b) },
	}
}

// sortKey is what an item is sorted by: of its lane, the lane's rank.
func (a asker) sortKey(it *queue.Item, values condition.Values, path string) gjson.Result {
	if path == "lane" {
		return gjson.Result{Type: gjson.Number, Num: float64(a.lists.settings.Current().Settings.LaneRank(it.Lane)), Raw: "0"}
	}
	return values(path)
}

func compareValues(a, b gjson.Result, descending bool) int {
	thereA, thereB := a.Exists() && a.Type != gjson.Null, b.Exists() && b.Type != gjson.Null
	if !thereA || !thereB {
		return cmp.Compare(map[bool]int{false: 1}[thereA], map[bool]int{false: 1}[thereB])
	}
	c := 0
	if a.Type == gjson.Number && b.Type == gjson.Number {
		c = cmp.Compare(a.Num, b.Num)
	} else {
		c = strings.Compare(a.String(), b.String())
	}
	if descending {
		return -c
	}
	return c
}

// NamedRow is one queue in the list of them all.
type NamedRow struct {
	Queue       string `json:"queue"`
	Description string `json:"description,omitempty"`
	Ready       int    `json:"ready"`
	Person      int    `json:"waitsForPerson"`
	Off         int    `json:"disabled"` // only wait as their step is disabled
}

// Listed is how many rows the queue has.
func (r NamedRow) Listed() int { return r.Ready + r.Person + r.Off }

// Queues lists the named queues, and those of the steps where something is ready or waits
// for a person.
func (qu *QueueLists) Queues() ([]NamedRow, error) {
	rows := []NamedRow{}
	for _, name := range slices.Sorted(maps.Keys(qu.settings.Current().Queues)) {
		row, err := qu.CountQueue(QueueAsk{Which: name})
		if err != nil {
			return nil, err
		}
		row.Description = qu.settings.Current().Queues[name].Description
		rows = append(rows, row)
	}
	qu.index.Loaded().Settle(qu.ledger.Now())
	_, _, workflows := qu.index.Loaded().Counts()
	for _, w := range workflows {
		for _, s := range w.Steps {
			if s.Ready+s.Person > 0 {
				rows = append(rows, NamedRow{Queue: w.Workflow + "/" + string(s.Step), Ready: s.Ready, Person: s.Person})
			}
		}
	}
	return rows, nil
}

// CountQueue counts a queue, by who can go on with a step; of one without conditions it
// looks at no item but those whose step is disabled.
func (qu *QueueLists) CountQueue(ask QueueAsk) (NamedRow, error) {
	row := NamedRow{Queue: ask.Which}
	q, err := qu.AskedQueue(ask.Which)
	if err != nil {
		return row, err
	}
	if run, _, _ := strings.Cut(ask.Which, "/"); q.Condition() == nil && ask.Where == nil && !ask.narrows() && q.Limit == 0 && ask.Limit == 0 && !qu.lists.isRun(run) {
		qu.index.Loaded().Settle(qu.ledger.Now())
		_, _, workflows := qu.index.Loaded().Counts()
		for _, w := range workflows {
			for _, s := range w.Steps {
				if !q.Wants(queue.StepID{Workflow: w.Workflow, Step: s.Step}) {
					continue
				}
				if ask.For != People {
					row.Ready += s.Ready
				}
				if ask.For != Robots {
					row.Person += s.Person
				}
			}
		}
		if ask.For != People {
			row.Off = len(qu.offRows(math.MaxInt, func(en queue.Entry) bool { return q.Wants(en.ID()) }))
		}
		return row, nil
	}
	rows, err := qu.Queue(ask)
	for _, r := range rows {
		switch {
		case r.Person:
			row.Person++
		case r.Why == "":
			row.Ready++
		default:
			row.Off++
		}
	}
	return row, err
}

// LimitRow is a limit in force, and what fills it.
type LimitRow struct {
	Limit string          `json:"limit"`
	Of    string          `json:"of"`
	Used  int             `json:"used"`
	Most  int             `json:"most"`
	Fills []layout.ItemID `json:"fills"` // the first of the items
}

// QueueLimits gives the limits that hold the steps of a queue back once they are reached.
func (qu *QueueLists) QueueLimits(which string) ([]LimitRow, error) {
	q, err := qu.AskedQueue(which)
	if err != nil {
		return nil, err
	}
	var collections []layout.Name
	for name := range qu.settings.Current().Settings.Collections {
		collections = append(collections, layout.Name(name))
	}
	slices.Sort(collections)
	rows := []LimitRow{}
	const most = 5
	for _, l := range qu.index.Loaded().Limits(q.Wants, collections, most) {
		rows = append(rows, LimitRow{Limit: l.Key, Of: l.Of, Used: l.Used, Most: l.Limit, Fills: l.Fills})
	}
	return rows, nil
}

// VersionRow is a definition that runs of a workflow go by.
type VersionRow struct {
	Digest  string `json:"digest"`
	Runs    int    `json:"runs"`
	InForce bool   `json:"inForce"`
}

// Versions gives the definitions that runs of a workflow go by: the one in force, and earlier ones.
func (qu *QueueLists) Versions(workflow string) []VersionRow {
	rows := []VersionRow{}
	now := qu.settings.Current().Workflows[workflow]
	for _, v := range qu.index.Loaded().Versions() {
		if v.Plan.Name == workflow {
			rows = append(rows, VersionRow{v.Plan.Digest, v.Runs, now != nil && now.Def.Digest == v.Plan.Digest})
		}
	}
	slices.SortFunc(rows, func(a, b VersionRow) int {
		return cmp.Or(-cmp.Compare(a.Runs, b.Runs), cmp.Compare(a.Digest, b.Digest))
	})
	return rows
}

// Refresh takes in what others committed.
func (an *Answers) Refresh(ctx context.Context) error { return an.ledger.Store.Refresh(ctx) }

// Tip names the commit that the branch is at.
func (an *Answers) Tip() (string, error) {
	v, err := an.ledger.Store.Tip()
	return v.Commit().String(), err
}

// Changed receives after the index changed.
func (qu *QueueLists) Changed() <-chan struct{} { return qu.index.Loaded().Wake() }
