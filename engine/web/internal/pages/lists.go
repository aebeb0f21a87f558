package pages

import (
	"cmp"
	"html/template"
	"net/http"
	"slices"

	"bagpipe/engine/ask"
	"bagpipe/engine/state"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
)

// lists are the pages that only ask.
type lists struct{ d *desk.Desk }

type mineView struct {
	Rows   []ask.ItemRow
	Now    *ask.ItemRow // what is decided on; nil: nothing waits
	Item   ask.Detail
	Facts  []fact
	Next   string
	Others []string // who else has it open
	More   int      // that are not listed
}

// mine shows what waits for people, the oldest first, and what one needs to decide on one.
func (p lists) mine(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	ctx := r.Context()
	v := mineView{Rows: p.d.Ask.ForPeople(desk.Within(ctx))}
	slices.SortStableFunc(v.Rows, func(a, b ask.ItemRow) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Item, b.Item)) })
	if len(v.Rows) == 0 {
		return "mine", v, nil
	}
	at := max(0, slices.IndexFunc(v.Rows, func(row ask.ItemRow) bool {
		return string(row.Item) == r.URL.Query().Get("item") && (r.URL.Query().Get("step") == "" || string(row.Step) == r.URL.Query().Get("step"))
	}))
	now := v.Rows[at]
	next := v.Rows[(at+1)%len(v.Rows)]
	v.Now, v.Next = &now, "mine?"+query("item", next.Item, "step", next.Step)
	const files, around, listed = 50, 50, 200
	var err error
	if v.Item, err = p.d.Ask.ShowSome(ctx, now.Item, files); err != nil {
		return "", nil, err
	}
	v.Facts = factsOf(v.Item.Manifest)
	v.Others = p.d.Presence.Note(string(now.Item)+"/"+now.Workflow+"/"+string(now.Step), desk.Who(ctx).Name, p.d.Now())
	from := max(0, min(at-around, len(v.Rows)-listed))
	v.More = max(0, len(v.Rows)-listed)
	v.Rows = v.Rows[from:min(len(v.Rows), from+listed)]
	return "mine", v, nil
}

func (p lists) failures(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	return "failures", p.d.Ask.Failures(ask.FailureFilter{Workflow: r.URL.Query().Get("workflow"), Step: layout.Name(r.URL.Query().Get("step")), Within: desk.Within(r.Context())}), nil
}

func (p lists) queues(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	if err := p.d.Whole(r.Context()); err != nil {
		return "", nil, err
	}
	rows, err := p.d.Ask.Queues()
	return "queues", rows, err
}

type queueView struct {
	Name   string
	Count  ask.NamedRow
	Rows   []ask.QueueRow
	Limits []ask.LimitRow
}

// queue shows items in the order in which they are handed out.
func (p lists) queue(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	const most = 200
	asked := ask.QueueAsk{Which: r.PathValue("name"), For: r.URL.Query().Get("for"), Within: desk.Within(r.Context())}
	count, err := p.d.Ask.CountQueue(asked)
	if err != nil {
		return "", nil, err
	}
	asked.Limit = most
	v := queueView{Name: r.PathValue("name"), Count: count}
	if v.Rows, err = p.d.Ask.Queue(asked); err == nil && p.d.Whole(r.Context()) == nil {
		v.Limits, err = p.d.Ask.QueueLimits(asked.Which)
	}
	return "queue", v, err
}

func (p lists) batches(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	if err := p.d.Whole(r.Context()); err != nil {
		return "", nil, err
	}
	rows, err := p.d.Ask.Batches()
	return "batches", rows, err
}

type batchView struct {
	ask.BatchRow
	Members []ask.ItemRow
}

func (p lists) batch(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	if err := p.d.Whole(r.Context()); err != nil {
		return "", nil, err
	}
	b, members, err := p.d.Ask.Batch(layout.Name(r.PathValue("name")))
	const most = 200
	slices.SortStableFunc(members, func(a, b ask.ItemRow) int { return cmp.Compare(batchRank(a.Status), batchRank(b.Status)) })
	return "batch", batchView{b, members[:min(len(members), most)]}, err
}

// batchRank has what failed before what is not done.
func batchRank(s state.Status) int {
	return (slices.Index([]state.Status{state.Failed, state.InProgress, state.Waiting, state.Scheduled}, s) + 5) % 5
}

func (p lists) workflows(http.ResponseWriter, *http.Request) (string, any, error) {
	return "workflows", p.d.Ask.WorkflowList(), nil
}

type workflowView struct {
	Plan     *state.Definition
	Text     string
	Graph    template.HTML
	Rows     []graphRow                  // the same as a table
	Controls map[string]*ask.StepControl // nil: the step is enabled
	Versions []ask.VersionRow
}

// graphRow is one step of a graph, and how many items stand where at it.
type graphRow struct {
	desk.GraphRow
	Cells []cell
}

// tableOf tells what a graph draws.
func tableOf(g *desk.Graph, workflow string, counts *ask.Grid) (rows []graphRow) {
	for _, r := range g.Rows() {
		row := ask.GridRow{Step: r.Step}
		if counts != nil {
			if i := slices.IndexFunc(counts.Steps, func(s ask.GridRow) bool { return s.Step == r.Step }); i >= 0 {
				row = counts.Steps[i]
			}
		}
		rows = append(rows, graphRow{r, gridCells(workflow, row)})
	}
	return rows
}

// workflow shows a definition in force, with how many items stand where.
func (p lists) workflow(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	ctx := r.Context()
	text, plan, err := p.d.Ask.WorkflowText(r.PathValue("name"))
	if err != nil {
		return "", nil, err
	}
	s, err := p.d.Standing(ctx)
	if err != nil {
		return "", nil, err
	}
	v := workflowView{Plan: plan, Text: string(text), Controls: map[string]*ask.StepControl{}}
	if p.d.Whole(ctx) == nil {
		v.Versions = p.d.Ask.Versions(plan.Name)
	}
	var counts *ask.Grid
	for i := range s.Grids {
		if s.Grids[i].Workflow == plan.Name {
			counts = &s.Grids[i]
		}
	}
	g := desk.GraphOf(plan, counts)
	v.Graph, v.Rows = g.SVG(false), tableOf(g, plan.Name, counts)
	for i := range s.Steps {
		v.Controls[s.Steps[i].Step] = &s.Steps[i]
	}
	return "workflow", v, nil
}

type statsView struct {
	ask.StatsSaid
	Milestones ask.Milestones
	Longest    float64 // seconds, of all that is drawn
}

func (p lists) stats(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	if err := p.d.Whole(r.Context()); err != nil {
		return "", nil, err
	}
	m, err := p.d.Ask.Milestones(ask.Filter{}, "", "")
	if err != nil {
		return "", nil, err
	}
	v := statsView{StatsSaid: p.d.Ask.Stats().Said(p.d.Words), Milestones: m}
	for _, s := range v.Steps {
		v.Longest = max(v.Longest, s.WaitP95, s.RunP95)
	}
	return "stats", v, nil
}

type inboxView struct {
	ask.InboxStatus
	Collections []ask.CollectionRow
}

func (p lists) inbox(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	within := desk.Within(r.Context())
	found, err := p.d.Ask.Inbox(r.Context())
	if err != nil {
		return "", nil, err
	}
	s := ask.Status{InboxStatus: found}
	v := inboxView{InboxStatus: s.Said(p.d.Words).InboxStatus}
	v.Collections, err = p.d.Ask.Collections()
	if len(within) > 0 { // what is rejected, or not taken in, may be of others
		v.Pauses, v.Rejected = nil, nil
		v.Inbox = slices.DeleteFunc(v.Inbox, func(row ask.InboxRow) bool { return !slices.Contains(within, row.Collection) })
		v.Collections = slices.DeleteFunc(v.Collections, func(c ask.CollectionRow) bool { return !slices.Contains(within, layout.Name(c.Name)) })
	}
	return "inbox", v, err
}

func (p lists) engines(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	if err := p.d.Whole(r.Context()); err != nil {
		return "", nil, err
	}
	s, err := p.d.Ask.Standing(r.Context())
	return "engines", s, err
}

// history shows the newest commits of all items.
func (p lists) history(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	if err := p.d.Whole(r.Context()); err != nil {
		return "", nil, err
	}
	v := historyView{}
	return "log", &v, history(r, p.d, &v)
}
