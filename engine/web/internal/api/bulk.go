package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"bagpipe/engine/fault"
	"bagpipe/engine/web/access"
	"bagpipe/engine/web/internal/bulk"
	"bagpipe/engine/web/internal/desk"
)

// mostUnseen is how many items an act takes that nobody looked at before.
const mostUnseen = 100

type manyIn struct {
	Key  string `header:"Idempotency-Key"`
	Body struct {
		ActBody
		Items   []string `json:"items,omitempty" maxItems:"10000" doc:"as items/{id} names them"`
		Filter  *Listing `json:"filter,omitempty" doc:"instead of items: the parameters of items"`
		DryRun  bool     `json:"dryRun,omitempty" doc:"changes nothing; the answer's id is a preview"`
		Preview string   `json:"preview,omitempty" doc:"the id of a preview: acts on the items that were seen there and have not changed since"`
	}
}

type actsIn struct {
	ID string `path:"id"`
}

// registerBulk registers acts on several items.
func (a *API) registerBulk() {
	post(a, http.MethodPost, "acts", "Act on several items; look first with dryRun, which more than 100 need", a.many)
	get(a, "acts/{id}", "How far an act on several items is, and every refusal", func(ctx context.Context, in *actsIn) (bulk.Act, error) {
		return a.acts.Show(ctx, in.ID)
	})
	post(a, http.MethodDelete, "acts/{id}", "Stop it: no further item is begun", func(ctx context.Context, in *actsIn) (bulk.Act, error) {
		if _, err := a.d.Acts(ctx, access.Operator); err != nil {
			return bulk.Act{}, err
		}
		return a.acts.Stop(ctx, in.ID)
	})
}

func (a *API) many(ctx context.Context, in *manyIn) (bulk.Act, error) {
	if _, err := a.d.Acts(ctx, access.Operator); err != nil {
		return bulk.Act{}, err
	}
	ctx = desk.AnsweringMany(ctx)
	b := &in.Body
	if b.Preview != "" {
		seen, err := a.acts.Show(ctx, b.Preview)
		if err == nil && (seen.Act != b.Act || seen.Step != b.Step || b.DryRun) {
			err = fault.New(fault.Invalid, "preview: it is of another act")
		}
		if err != nil {
			return bulk.Act{}, err
		}
		return a.acts.Begin(ctx, b.Preview)
	}
	if (b.Filter == nil) == (b.Items == nil) {
		return bulk.Act{}, fault.New(fault.Invalid, "expected items, or a filter")
	}
	w, err := b.wanted()
	if err != nil {
		return bulk.Act{}, err
	}
	if w.Act == "retry" && w.Step == "" {
		return bulk.Act{}, fault.New(fault.Invalid, "retry: expected a step; POST failures/GROUP/retry lets all be tried again that failed for one cause, and GET failures lists the groups")
	}
	var filter url.Values
	if b.Filter != nil {
		filter = b.Filter.values()
	}
	items, err := a.acts.Chosen(ctx, b.Items, filter)
	if err != nil {
		return bulk.Act{}, err
	}
	if !b.DryRun && len(items) > mostUnseen {
		return bulk.Act{}, withStatus{fmt.Errorf("%d items: look first with dryRun, then send the preview", len(items)), http.StatusUnprocessableEntity, "preview-needed"}
	}
	seen, err := a.acts.Preview(ctx, items, w)
	if err != nil || b.DryRun {
		return seen, err
	}
	return a.acts.Begin(ctx, seen.ID)
}
