package main

import (
	"context"
	"fmt"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// flowArgs are what acts on an item's workflow take.
type flowArgs struct {
	Item     string `arg:"" help:"Identifier, the beginning of one, or label."`
	Workflow string `arg:"" help:"WORKFLOW, its latest run, or one run, as accession.1."`
	Message  string `short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
	JSON     bool   `name:"json" help:"Print JSON."`
}

type (
	workflowDeactivateCmd struct{ flowArgs }
	workflowActivateCmd   struct{ flowArgs }
)

func (c *workflowDeactivateCmd) Run(ctx context.Context, a *app) error {
	return c.change(ctx, a, func(e *engine.Engine, id layout.ItemID) (state.Transition, error) {
		return e.Act.Deactivate(ctx, id, c.Workflow, c.Message)
	})
}

func (c *workflowActivateCmd) Run(ctx context.Context, a *app) error {
	return c.change(ctx, a, func(e *engine.Engine, id layout.ItemID) (state.Transition, error) {
		return e.Act.Activate(ctx, id, c.Workflow, c.Message)
	})
}

func (c *flowArgs) change(ctx context.Context, a *app, do func(*engine.Engine, layout.ItemID) (state.Transition, error)) error {
	return a.onItem(ctx, c.Item, func(e *engine.Engine, id layout.ItemID) error {
		tr, err := do(e, id)
		if err != nil {
			return err
		}
		row := flowRow{Item: id, Workflow: tr.Workflow, From: tr.From, To: tr.To}
		if c.JSON {
			return a.JSON(row)
		}
		fmt.Fprintf(a.Out, "%s %s: %s → %s\n", id.Short(), tr.Workflow, tr.From, tr.To)
		return nil
	})
}

// flowRow is what became of a workflow of an item.
type flowRow struct {
	Item     layout.ItemID `json:"item"`
	Workflow string        `json:"workflow"`
	From     state.Status  `json:"from,omitempty"`
	To       state.Status  `json:"to,omitempty"`
	Refused  string        `json:"refused,omitempty"`
}

type workflowMigrateCmd struct {
	Items    []string `arg:"" name:"item" help:"Identifiers, their beginnings, or labels."`
	Workflow string   `placeholder:"NAME" help:"Only this workflow, or one run of it; default: all that are not done."`
	Message  string   `short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
	JSON     bool     `name:"json" help:"Print JSON."`
}

// Run moves every item it can; one that cannot be moved does not keep the others.
func (c *workflowMigrateCmd) Run(ctx context.Context, a *app) error {
	return a.with(ctx, func(e *engine.Engine) error {
		rows, refused := []flowRow{}, false
		for _, ref := range c.Items {
			moved, err := c.move(ctx, a, e, ref)
			rows = append(rows, moved...)
			if err == nil {
				continue
			}
			if ctx.Err() != nil {
				return err
			}
			refused = true
			a.Talk("bagpipe: %s", errorText(err))
		}
		if c.JSON {
			if err := a.JSON(rows); err != nil {
				return err
			}
		} else {
			for _, r := range rows {
				if r.Refused == "" {
					fmt.Fprintf(a.Out, "%s %s: moved to the definition in force, %s\n", r.Item.Short(), r.Workflow, r.To)
				}
			}
		}
		if refused {
			return screen.ExitError
		}
		return nil
	})
}

func (c *workflowMigrateCmd) move(ctx context.Context, a *app, e *engine.Engine, ref string) (rows []flowRow, err error) {
	id, err := e.Ask.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	names := []string{c.Workflow}
	if c.Workflow == "" {
		if names, err = e.Act.Movable(ctx, id); err != nil {
			return nil, err
		}
		if len(names) == 0 {
			a.Talk("%s: no workflow of it is to be moved", id.Short())
		}
	}
	for _, name := range names {
		tr, err := e.Act.Migrate(ctx, id, name, c.Message)
		if err != nil {
			return append(rows, flowRow{Item: id, Workflow: name, Refused: err.Error()}), err
		}
		rows = append(rows, flowRow{Item: id, Workflow: tr.Workflow, From: tr.From, To: tr.To})
	}
	return rows, nil
}

type startCmd struct {
	Item      string `arg:"" help:"Identifier, the beginning of one, or label."`
	Workflow  string `arg:"" help:"The workflow's name."`
	NotBefore string `placeholder:"TIME" help:"Nothing of it is done before: 2027-01-31 (midnight UTC) or 2027-01-31T08:00:00Z."`
	JSON      bool   `name:"json" help:"Print JSON."`

	from time.Time
}

// Validate is called by kong.
func (c *startCmd) Validate() (err error) {
	if c.NotBefore != "" {
		if c.from, err = state.ParseTime(c.NotBefore); err != nil {
			return fmt.Errorf("--not-before: %w", err)
		}
	}
	return nil
}

func (c *startCmd) Run(ctx context.Context, a *app) error {
	return a.onItem(ctx, c.Item, func(e *engine.Engine, id layout.ItemID) error {
		name, err := e.Act.Start(ctx, id, c.Workflow, c.from)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.JSON(struct {
				Item      layout.ItemID `json:"item"`
				Workflow  string        `json:"workflow"`
				NotBefore time.Time     `json:"notBefore,omitzero"`
			}{id, name, c.from})
		}
		if c.from.IsZero() {
			fmt.Fprintf(a.Out, "%s %s started\n", id.Short(), name)
			return nil
		}
		fmt.Fprintf(a.Out, "%s %s started; nothing of it is done before %s\n", id.Short(), name, screen.When(c.from))
		return nil
	})
}
