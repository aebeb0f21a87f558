package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"bagpipe/engine/catalog"
	"bagpipe/engine/delivery"
	"bagpipe/engine/disposal"
	"bagpipe/engine/fault"
	"bagpipe/engine/schedule"
	"bagpipe/engine/search"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"

	"github.com/danielgtaylor/huma/v2"
)

type deliveriesIn struct {
	To    string `query:"to" doc:"a target"`
	State string `query:"state" enum:"ready,waits,forbidden,sending,delivered,unconfirmed,withdrawn,failed,unreadable"`
	Limit int    `query:"limit" minimum:"1" maximum:"10000" default:"1000"`
	After string `query:"cursor" doc:"as the header Link of the page before has it: the next page"`
}

// deliveriesOut is a page of deliveries; Link leads to the next.
type deliveriesOut struct {
	Link string `header:"Link"`
	Body []delivery.Row
}

type decideIn struct {
	Item   string `path:"item"`
	Target string `path:"target"`
	Key    string `header:"Idempotency-Key"`
	Body   struct {
		Act     string `json:"act" enum:"approve,refuse,retry,withdraw"`
		Message string `json:"message,omitempty" maxLength:"4000"`
	}
}

type sayIn struct {
	Proposal string `path:"key"`
	Key      string `header:"Idempotency-Key"`
	Body     struct {
		Act     string `json:"act" enum:"approve,refuse"`
		Message string `json:"message,omitempty" maxLength:"4000"`
	}
}

type orderIn struct {
	NamePath
	Key  string `header:"Idempotency-Key"`
	Body struct {
		Act string `json:"act" enum:"start,stop,restart,fire"`
		Now bool   `json:"now,omitempty" doc:"stop, restart: end also a firing at work"`
	}
}

type searchIn struct {
	Text       string   `query:"q" doc:"words; in quotes, one after the other"`
	BBox       string   `query:"bbox" doc:"W,S,E,N, in degrees"`
	From       string   `query:"from" doc:"a year, month, day or time"`
	Until      string   `query:"until"`
	Tag        []string `query:"tag,explode" doc:"TAG or KIND:TAG; all of them"`
	Where      string   `query:"where" doc:"a condition"`
	Collection string   `query:"collection"`
	Saved      string   `query:"saved" doc:"asks the question of searches/NAME.yaml, narrowed by all else"`
	Alike      string   `query:"alike" doc:"an item: those that have its name and its total size"`
	Limit      int      `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// values are the parameters as the desk reads them.
func (in *searchIn) values() url.Values {
	return url.Values{"q": {in.Text}, "bbox": {in.BBox}, "from": {in.From}, "until": {in.Until}, "tag": in.Tag, "where": {in.Where}, "collection": {in.Collection}, "saved": {in.Saved}, "alike": {in.Alike}}
}

// registerCapabilities registers what is asked of the rooms that do one thing each.
func registerCapabilities(a *API) {
	get(a, "schedules", "Schedules, and their last firings", func(ctx context.Context, _ *none) ([]schedule.Row, error) {
		if err := a.d.Whole(ctx); err != nil {
			return nil, err
		}
		rows, err := a.d.Schedule.Rows()
		return append([]schedule.Row{}, rows...), err
	})
	get(a, "schedules/{name}", "A schedule with its last firings", func(ctx context.Context, in *NamePath) (schedule.Row, error) {
		if err := a.d.Whole(ctx); err != nil {
			return schedule.Row{}, err
		}
		return a.d.Schedule.Row(in.Name)
	})
	huma.Register(a.huma, a.operation(http.MethodGet, "deliveries", "Deliveries to other systems: under way, waiting, done, failed"), func(ctx context.Context, in *deliveriesIn) (*deliveriesOut, error) {
		out, err := deliveriesOf(ctx, a, in)
		if err != nil {
			return nil, problemOf(a.d, err)
		}
		return out, nil
	})
	post(a, http.MethodPost, "deliveries/{item}/{target}/acts", "Decide on a delivery", func(ctx context.Context, in *decideIn) (desk.Decided, error) {
		return a.d.DecideDelivery(ctx, in.Item, layout.Name(in.Target), in.Body.Act, in.Body.Message)
	})
	post(a, http.MethodPost, "disposals/{key}/acts", "Have a word on a proposal to remove items for good; for people alone", func(ctx context.Context, in *sayIn) (desk.Said, error) {
		return a.d.SayOnDisposal(ctx, in.Proposal, in.Body.Act, in.Body.Message)
	})
	post(a, http.MethodPost, "schedules/{name}/acts", "Start, stop or fire a schedule", func(ctx context.Context, in *orderIn) (desk.Switched, error) {
		return a.d.OrderSchedule(ctx, in.Name, in.Body.Act, in.Body.Now)
	})
	get(a, "catalogs", "How the folders stand whose objects are items and stay where they are", func(ctx context.Context, _ *none) ([]catalog.Row, error) {
		if err := a.d.Whole(ctx); err != nil {
			return nil, err
		}
		rows, err := a.d.Catalog.Rows()
		return append([]catalog.Row{}, rows...), err
	})
	get(a, "disposals", "Proposals to remove items for good, and whose word they wait for", func(ctx context.Context, _ *none) ([]*disposal.Row, error) {
		if err := a.d.Whole(ctx); err != nil {
			return nil, err
		}
		rows, err := a.d.Disposal.List(ctx)
		return append([]*disposal.Row{}, rows...), err
	})
	get(a, "search", "Items by their words, place and time", func(ctx context.Context, in *searchIn) ([]search.Hit, error) {
		q, err := a.d.Sought(ctx, in.values())
		if err == nil && q.Empty() {
			err = fault.New(fault.Invalid, "expected something to look for")
		}
		if err != nil {
			return nil, err
		}
		hits, _, err := a.d.Find(ctx, q, in.Limit)
		return hits, err
	})
	get(a, "search/facets", "What the items of a search have in common", func(ctx context.Context, in *searchIn) ([]search.Facet, error) {
		if err := a.d.Whole(ctx); err != nil {
			return nil, err
		}
		q, err := a.d.Sought(ctx, in.values())
		if err != nil {
			return nil, err
		}
		all, err := a.d.Search.Facets(ctx, q)
		of := map[string]int{}
		return slices.DeleteFunc(append([]search.Facet{}, all...), func(f search.Facet) bool {
			of[f.Facet]++
			return of[f.Facet] > in.Limit
		}), err
	})
}

func deliveriesOf(ctx context.Context, a *API, in *deliveriesIn) (*deliveriesOut, error) {
	which := delivery.Which{To: layout.Name(in.To), State: in.State, Within: desk.Within(ctx)}
	if in.After != "" {
		after, err := delivery.ParseCursor(in.After)
		if err != nil {
			return nil, err
		}
		which.After = &after
	}
	rows, _, err := delivery.List(ctx, a.d.Delivery, which, in.Limit)
	out := &deliveriesOut{Body: append([]delivery.Row{}, rows...)}
	if err != nil || len(rows) < in.Limit {
		return out, err
	}
	q := url.Values{"limit": {strconv.Itoa(in.Limit)}, "cursor": {rows[len(rows)-1].Place().Cursor()}}
	for name, value := range map[string]string{"to": in.To, "state": in.State} {
		if value != "" {
			q.Set(name, value)
		}
	}
	out.Link = "<" + strings.TrimSuffix(a.d.Base, "/") + Root + "deliveries?" + q.Encode() + `>; rel="next"`
	return out, nil
}
