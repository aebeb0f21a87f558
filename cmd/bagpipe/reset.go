package main

import (
	"context"
	"errors"
	"fmt"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/act"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

type stepResetCmd struct {
	Names   []string `arg:"" name:"item" help:"ITEM… STEP: items, then the step; with --status alone, only the step."`
	After   bool     `help:"Also every step that needs it, directly or through others."`
	Status  string   `placeholder:"STATUS" enum:",completed,skipped,failed" default:"" help:"Only where the step is completed, skipped or failed; without ITEM: of every item where it is."`
	Message string   `short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
	JSON    bool     `name:"json" help:"Print JSON."`
	placeArgs
	sureArgs
}

// Validate is called by kong.
func (c *stepResetCmd) Validate() error {
	if len(c.Names) == 1 && c.Status == "" {
		return errors.New("expected ITEM… STEP, or --status STATUS STEP for every item whose step is so")
	}
	if len(c.Names) > 1 && (c.given() || c.DryRun) {
		return errors.New("filters and --dry-run are for resets without ITEM")
	}
	return c.placeArgs.Validate()
}

func (c *stepResetCmd) Run(ctx context.Context, a *app) error {
	workflow, step, err := splitStep(c.Names[len(c.Names)-1])
	if err != nil {
		return err
	}
	open := a.with
	if len(c.Names) == 1 {
		open = a.looking
	}
	return open(ctx, func(e *engine.Engine) error {
		seen, err := c.steps(ctx, a, e, workflow, step)
		if err != nil {
			return err
		}
		if err := c.sure(a, len(seen), "reset "+string(step)+" of", "item"); err != nil {
			return err
		}
		rows, refused := []act.Done{}, 0
		for _, s := range seen {
			row := act.Done{Item: s.Item, Workflow: s.Workflow, Step: step, From: s.Status}
			if !c.DryRun {
				tr, err := e.Act.Reset(ctx, s, c.After, c.Message)
				switch {
				case err == nil:
					row.Workflow, row.From = tr.Workflow, tr.From
				case !ledger.IsRefused(err) || len(seen) == 1:
					return err
				default:
					row.Refused = err.Error()
					refused++
				}
			}
			rows = append(rows, row)
		}
		if err := c.print(a, rows); err != nil {
			return err
		}
		if refused > 0 {
			return screen.ExitError
		}
		return nil
	})
}

// steps are those of the named items, or of all that are as the query says.
func (c *stepResetCmd) steps(ctx context.Context, a *app, e *engine.Engine, workflow string, step layout.Name) ([]act.SeenStep, error) {
	if len(c.Names) == 1 {
		f := c.filter()
		f.Workflow, f.Step, f.Status = workflow, step, state.Status(c.Status)
		seen, err := e.Ask.Steps(f)
		a.tellMissing(f.Asked)
		return seen, err
	}
	var seen []act.SeenStep
	for _, ref := range c.Names[:len(c.Names)-1] {
		id, err := e.Ask.Resolve(ctx, ref)
		if err != nil {
			return nil, err
		}
		seen = append(seen, act.SeenStep{StepRef: ledger.StepRef{Item: id, Workflow: workflow, Step: step}, Status: state.Status(c.Status)})
	}
	return seen, nil
}

func (c *stepResetCmd) print(a *app, rows []act.Done) error {
	if c.JSON {
		return a.JSON(rows)
	}
	if len(rows) == 0 {
		a.Talk("no item's step is so")
	}
	would := ""
	if c.DryRun {
		would = "would: "
	}
	for _, r := range rows {
		if r.Refused != "" {
			a.Talk("bagpipe: %s", r.Refused)
			continue
		}
		fmt.Fprintf(a.Out, "%s%s %s/%s: %s → waiting\n", would, r.Item.Short(), r.Workflow, r.Step, r.From)
	}
	if c.DryRun {
		a.Talk("%s would be changed", screen.Count(len(rows), "item"))
	}
	return nil
}
