package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// Paging says which part of a list is wanted, and in which order.
type Paging struct {
	Sort  []string `query:"sort,explode" doc:"paths, as in metadata.year; -PATH: the highest first"`
	Limit int      `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	Skip  int      `query:"skip" minimum:"0"`
	After string   `query:"cursor" doc:"as the header Link of the page before has it: the next page, wherever items have moved since"`
}

// itemsOut is a page of items; Link leads to the next.
type itemsOut struct {
	Link string `header:"Link"`
	Body []ask.ItemRow
}

type itemsIn struct {
	Listing
	Paging
}

// NamePath names a thing.
type NamePath struct {
	Name string `path:"name"`
}

// QueueQuery says what of a queue is wanted.
type QueueQuery struct {
	Where string `query:"where"`
	For   string `query:"for" enum:"robots,people"`
	Limit int    `query:"limit" minimum:"0" maximum:"10000" default:"1000"`
}

type namedQueueIn struct {
	NamePath
	QueueQuery
}

type stepQueueIn struct {
	Workflow string `path:"workflow"`
	Step     string `path:"step"`
	QueueQuery
}

type failuresIn struct {
	Workflow string `query:"workflow"`
	Step     string `query:"step"`
}

type milestonesIn struct {
	Listing
	From string `query:"from"`
	To   string `query:"to"`
}

type stalledIn struct {
	Longer string `query:"longer-than" doc:"as in 36h"`
}

// batchAnswer is a batch and its items.
type batchAnswer struct {
	ask.BatchRow
	Members []ask.ItemRow `json:"members"`
}

// workflowAnswer is a definition in force.
type workflowAnswer struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Text   string `json:"text" doc:"as it is written, in YAML"`
}

// registerReads registers what is asked of the workspace as a whole.
func (a *API) registerReads() {
	get(a, "status", "How the workspace stands", a.status)
	huma.Register(a.huma, a.operation(http.MethodGet, "items", "List items"), func(ctx context.Context, in *itemsIn) (*itemsOut, error) {
		out, err := a.items(ctx, in)
		if err != nil {
			return nil, problemOf(a.d, err)
		}
		return out, nil
	})
	get(a, "facets", "Count items by the values that they have in common", func(ctx context.Context, in *Listing) ([]ask.Facet, error) {
		f, err := a.d.Filter(ctx, in.values())
		if err != nil {
			return nil, err
		}
		return a.d.Ask.Facets(f)
	})
	get(a, "queues", "The queues, with how many are ready in each", func(ctx context.Context, _ *none) ([]ask.NamedRow, error) {
		if err := a.d.Whole(ctx); err != nil {
			return nil, err
		}
		return a.d.Ask.Queues()
	})
	get(a, "queues/{name}", "The steps that are ready in a queue, in the order in which they are handed out", func(ctx context.Context, in *namedQueueIn) ([]ask.QueueRow, error) {
		return a.queue(ctx, in.Name, in.QueueQuery)
	})
	get(a, "queues/{workflow}/{step}", "The items that are ready for a step", func(ctx context.Context, in *stepQueueIn) ([]ask.QueueRow, error) {
		return a.queue(ctx, in.Workflow+"/"+in.Step, in.QueueQuery)
	})
	get(a, "failures", "The failures that wait for a person, grouped", func(ctx context.Context, in *failuresIn) ([]ask.FailureGroup, error) {
		if err := a.d.Ask.CheckFilter(ask.Filter{Workflow: in.Workflow, Step: layout.Name(in.Step)}); err != nil {
			return nil, err
		}
		return a.d.Ask.Failures(ask.FailureFilter{Workflow: in.Workflow, Step: layout.Name(in.Step), Within: desk.Within(ctx)}), nil
	})
	get(a, "milestones", "How many items reached each milestone, and how long between any two", func(ctx context.Context, in *milestonesIn) (ask.Milestones, error) {
		f, err := a.d.Filter(ctx, in.values())
		if err != nil {
			return ask.Milestones{}, err
		}
		return a.d.Ask.Milestones(f, layout.Name(in.From), layout.Name(in.To))
	})
	a.registerWhole()
	registerCapabilities(a)
	a.registerWorkflows()
}

// registerWhole registers what accounts that are confined to collections are not told.
func (a *API) registerWhole() {
	get(a, "batches", "List batches", func(ctx context.Context, _ *none) ([]ask.BatchRow, error) {
		if err := a.d.Whole(ctx); err != nil {
			return nil, err
		}
		return a.d.Ask.Batches()
	})
	get(a, "batches/{name}", "A batch and its items", func(ctx context.Context, in *NamePath) (batchAnswer, error) {
		if err := a.d.Whole(ctx); err != nil {
			return batchAnswer{}, err
		}
		b, items, err := a.d.Ask.Batch(layout.Name(in.Name))
		return batchAnswer{b, items}, err
	})
	get(a, "stats", "How long steps wait and run, where the bottleneck is, and how to widen it", func(ctx context.Context, _ *none) (ask.StatsSaid, error) {
		if err := a.d.Whole(ctx); err != nil {
			return ask.StatsSaid{}, err
		}
		return a.d.Ask.Stats().Said(a.d.Words), nil
	})
	get(a, "stalled", "The steps that have not moved for longer than usual", func(ctx context.Context, in *stalledIn) ([]ask.StalledSaid, error) {
		longer, err := desk.Duration(in.Longer)
		if err == nil {
			err = a.d.Whole(ctx)
		}
		if err != nil {
			return nil, err
		}
		return ask.StalledIn(a.d.Words, a.d.Ask.Stalled(longer, 0)), nil
	})
	get(a, "inbox", "The drops that lie in the inbox, and why", func(ctx context.Context, _ *none) (ask.InboxStatus, error) {
		s, err := a.wholeStatus(ctx)
		return s.InboxStatus, err
	})
	get(a, "engines", "The engines at work, and their attempts", func(ctx context.Context, _ *none) (enginesAnswer, error) {
		s, err := a.wholeStatus(ctx)
		return enginesAnswer{s.Engines, s.Running, s.Cold}, err
	})
	get(a, "healthz", "Whether this server is well", func(context.Context, *none) (map[string]string, error) {
		if err := a.d.Health(); err != nil {
			return nil, fault.New(fault.Busy, err.Error())
		}
		return map[string]string{"status": "ok"}, nil
	})
}

// enginesAnswer is who is at work.
type enginesAnswer struct {
	Engines []string          `json:"engines"`
	Running []ask.RunningStep `json:"running"`
	Cold    []string          `json:"cold"`
}

func (a *API) wholeStatus(ctx context.Context) (ask.Status, error) {
	if err := a.d.Whole(ctx); err != nil {
		return ask.Status{}, err
	}
	s, err := a.d.Ask.Status(ctx, ask.Filter{})
	return s.Said(a.d.Words), err
}

func (a *API) status(ctx context.Context, in *Listing) (ask.Status, error) {
	f, err := a.d.Filter(ctx, in.values())
	if err != nil {
		return ask.Status{}, err
	}
	s, err := a.d.Status(ctx, f)
	return s.Said(a.d.Words), err
}

func (a *API) items(ctx context.Context, in *itemsIn) (*itemsOut, error) {
	q := in.values()
	f, err := a.d.Filter(ctx, q)
	if err != nil {
		return nil, err
	}
	rows, err := a.d.Ask.Items(f, ask.Page{Sort: in.Sort, From: in.Skip, Limit: in.Limit, After: in.After})
	if err != nil || len(rows) < in.Limit {
		return &itemsOut{Body: rows}, err
	}
	next, err := a.d.Ask.Cursor(rows[len(rows)-1].Item, in.Sort)
	if err != nil {
		return nil, err
	}
	q.Set("cursor", next)
	q.Set("limit", strconv.Itoa(in.Limit))
	q["sort"] = in.Sort
	return &itemsOut{"<" + strings.TrimSuffix(a.d.Base, "/") + Root + "items?" + q.Encode() + `>; rel="next"`, rows}, nil
}

func (a *API) queue(ctx context.Context, which string, in QueueQuery) ([]ask.QueueRow, error) {
	where, err := desk.Where(in.Where)
	if err != nil {
		return nil, err
	}
	return a.d.Ask.Queue(ask.QueueAsk{Which: which, Where: where, For: in.For, Limit: in.Limit, Within: desk.Within(ctx)})
}

func (a *API) registerWorkflows() {
	get(a, "workflows", "The definitions in force", func(context.Context, *none) ([]ask.WorkflowRow, error) { return a.d.Ask.WorkflowList(), nil })
	get(a, "workflows/{name}", "A definition in force", func(_ context.Context, in *NamePath) (workflowAnswer, error) {
		text, d, err := a.d.Ask.WorkflowText(in.Name)
		if err != nil {
			return workflowAnswer{}, err
		}
		return workflowAnswer{d.Name, d.Digest, string(text)}, nil
	})
	stream(a, "workflows/{name}/graph.svg", "Its graph", []string{"image/svg+xml"}, func(ctx huma.Context, in *NamePath) error {
		_, plan, err := a.d.Ask.WorkflowText(in.Name)
		if err != nil {
			return err
		}
		_, w := humago.Unwrap(ctx)
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = fmt.Fprint(w, desk.GraphOf(plan, nil).SVG(true)) // who asked is gone
		return nil
	})
}
