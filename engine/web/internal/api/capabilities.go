package api

import (
	"context"

	"bagpipe/engine/catalog"
	"bagpipe/engine/delivery"
	"bagpipe/engine/disposal"
	"bagpipe/engine/schedule"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
)

type deliveriesIn struct {
	To    string `query:"to" doc:"a target"`
	State string `query:"state" enum:"ready,waits,forbidden,sending,delivered,unconfirmed,withdrawn,failed"`
	Limit int    `query:"limit" minimum:"1" maximum:"10000" default:"1000"`
}

// registerCapabilities registers what is asked of the rooms that do one thing each.
func registerCapabilities(a *API) {
	get(a, "schedules", "What is done at certain times, and what became of it", func(ctx context.Context, _ *none) ([]schedule.Row, error) {
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
	get(a, "deliveries", "What goes to other systems, waits, came there or failed", func(ctx context.Context, in *deliveriesIn) ([]delivery.Row, error) {
		rows, _, err := delivery.List(ctx, a.d.Delivery, delivery.Which{To: layout.Name(in.To), State: in.State, Within: desk.Within(ctx)}, in.Limit)
		return append([]delivery.Row{}, rows...), err
	})
	get(a, "catalogs", "How the folders stand whose objects are items and stay where they are", func(ctx context.Context, _ *none) ([]catalog.Row, error) {
		if err := a.d.Whole(ctx); err != nil {
			return nil, err
		}
		rows, err := a.d.Catalog.Rows()
		return append([]catalog.Row{}, rows...), err
	})
	get(a, "disposals", "Proposals to remove items for good, and what they wait for", func(ctx context.Context, _ *none) ([]*disposal.Row, error) {
		if err := a.d.Whole(ctx); err != nil {
			return nil, err
		}
		rows, err := a.d.Disposal.List(ctx)
		return append([]*disposal.Row{}, rows...), err
	})
}
