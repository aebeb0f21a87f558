package api

import (
	"context"
	"net/http"
	"strings"

	"bagpipe/engine/ask"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// ItemPath names an item.
type ItemPath struct {
	ID string `path:"id" doc:"an identifier, the beginning of one, a label, or another of the item's identifiers"`
}

type whyIn struct {
	ItemPath
	Step string `query:"step" doc:"STEP or WORKFLOW/STEP; else every step that is not done"`
}

type logIn struct {
	ItemPath
	Limit int `query:"limit" minimum:"0" maximum:"10000" default:"0" doc:"0: all"`
}

type fileIn struct {
	ItemPath
	Path string `path:"path" doc:"as listed"`
}

type attemptLogIn struct {
	ItemPath
	Step    string `path:"step"`
	Attempt string `path:"attempt"`
	Follow  bool   `query:"follow" doc:"also all lines to come, until it ends"`
}

// itemOut is an item with its stamp.
type itemOut struct {
	ETag string `header:"ETag"`
	Body ask.Detail
}

// registerItems registers what is asked of one item.
func (a *API) registerItems() {
	huma.Register(a.huma, a.operation(http.MethodGet, "items/{id}", "Everything about one item"), func(ctx context.Context, in *ItemPath) (*itemOut, error) {
		id, err := a.d.Object(ctx, in.ID)
		if err != nil {
			return nil, problemOf(a.d, err)
		}
		stamp, err := a.d.Ask.Stamp(id) // before the answer: a change between the two is seen as one after it
		if err != nil {
			return nil, problemOf(a.d, err)
		}
		d, err := a.d.Ask.Show(ctx, id)
		if err != nil {
			return nil, problemOf(a.d, err)
		}
		return &itemOut{`"` + stamp + `"`, d}, nil
	})
	get(a, "items/{id}/why", "Why its steps wait, and the acts that would help", func(ctx context.Context, in *whyIn) (ask.ExplainedSaid, error) {
		id, err := a.d.Object(ctx, in.ID)
		if err != nil {
			return ask.ExplainedSaid{}, err
		}
		workflow, step := "", in.Step
		if i := strings.LastIndexByte(step, '/'); i >= 0 {
			workflow, step = step[:i], step[i+1:]
		}
		x, err := a.d.Ask.Why(id, workflow, layout.Name(step))
		return x.Said(a.d.Words), err
	})
	get(a, "items/{id}/log", "Its history, the newest first", func(ctx context.Context, in *logIn) ([]desk.Line, error) {
		id, err := a.d.Object(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		lines := []desk.Line{}
		for c, err := range a.d.Ask.History(ctx, id, in.Limit) {
			if err != nil {
				return nil, err
			}
			lines = append(lines, desk.LineOf(c))
		}
		return lines, nil
	})
	get(a, "items/{id}/files", "Its files, as inventoried", func(ctx context.Context, in *ItemPath) ([]ask.FileDetail, error) {
		id, err := a.d.Object(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		d, err := a.d.Ask.Show(ctx, id)
		return d.Files, err
	})
	stream(a, "items/{id}/files/{path}", "The bytes of a file", []string{"application/octet-stream"}, func(ctx huma.Context, in *fileIn) error {
		id, err := a.d.Object(ctx.Context(), in.ID)
		if err != nil {
			return err
		}
		r, w := humago.Unwrap(ctx)
		return a.d.SendFile(w, r, id, r.PathValue("path"))
	})
	get(a, "items/{id}/result", "Its content as it stands and its robots' outputs: files with digests", func(ctx context.Context, in *ItemPath) ([]wire.File, error) {
		id, err := a.d.Object(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return a.d.ResultFiles(ctx, id)
	})
	stream(a, "items/{id}/result/{path}", "The bytes of one, also by Range", []string{"application/octet-stream"}, func(ctx huma.Context, in *fileIn) error {
		id, err := a.d.Object(ctx.Context(), in.ID)
		if err != nil {
			return err
		}
		r, w := humago.Unwrap(ctx)
		return a.d.SendResult(w, r, id, r.PathValue("path"))
	})
	stream(a, "items/{id}/logs/{step}/{attempt}", "The log of an attempt", []string{"text/plain"}, func(ctx huma.Context, in *attemptLogIn) error {
		id, err := a.d.Object(ctx.Context(), in.ID)
		if err != nil {
			return err
		}
		r, w := humago.Unwrap(ctx)
		return a.d.SendLog(w, r, id, in.Step, in.Attempt, in.Follow)
	})
}
