package main

import (
	"context"
	"errors"
	"fmt"

	"bagpipe/engine"
	"bagpipe/engine/act"
	"bagpipe/engine/ask"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// holdArgs are what hold and release take.
type holdArgs struct {
	Item    string `arg:"" optional:"" help:"Identifier, the beginning of one, or label; without it: every item that fits the filter."`
	Message string `short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
	itemFilter
	sureArgs
	JSON bool `name:"json" help:"Print JSON."`
}

// Validate is called by kong.
func (c *holdArgs) Validate() error {
	if (c.Item == "") != c.given() {
		return errors.New("expected ITEM, or a filter such as --where")
	}
	if c.Item != "" && c.DryRun {
		return errors.New("--dry-run is for acts without ITEM")
	}
	return c.placeArgs.Validate()
}

type (
	holdCmd    struct{ holdArgs }
	releaseCmd struct{ holdArgs }
)

func (c *holdCmd) Run(ctx context.Context, a *app) error {
	do := func(e *engine.Engine, id layout.ItemID) error {
		return e.Act.Hold(ctx, id, c.Message)
	}
	if c.Item == "" {
		return c.all(ctx, a, "hold", "held", false, do)
	}
	return c.one(ctx, a, do, func(item string) string {
		return item + " held; let it go on with: bagpipe release " + item
	})
}

func (c *releaseCmd) Run(ctx context.Context, a *app) error {
	do := func(e *engine.Engine, id layout.ItemID) error {
		return e.Act.Release(ctx, id, c.Message)
	}
	if c.Item == "" {
		return c.all(ctx, a, "release", "released", true, do)
	}
	return c.one(ctx, a, do, func(item string) string { return item + " released" })
}

// one acts on the item named.
func (c *holdArgs) one(ctx context.Context, a *app, do func(*engine.Engine, layout.ItemID) error, said func(item string) string) error {
	return a.onItem(ctx, c.Item, func(e *engine.Engine, id layout.ItemID) error {
		if err := do(e, id); err != nil {
			return err
		}
		if c.JSON {
			return a.JSON([]act.Done{{Item: id}})
		}
		fmt.Fprintln(a.Out, said(id.Short()))
		return nil
	})
}

// all acts on every item that fits and is held, or is not.
func (c *holdArgs) all(ctx context.Context, a *app, what, to string, held bool, do func(*engine.Engine, layout.ItemID) error) error {
	return a.looking(ctx, func(e *engine.Engine) error {
		f := c.filter()
		f.Held = held
		rows, err := e.Ask.Items(f, ask.Page{})
		if err != nil {
			return err
		}
		a.tellMissing(f.Asked)
		var seen []act.SeenStep
		for _, r := range rows {
			if r.Held == held {
				seen = append(seen, act.SeenStep{StepRef: ledger.StepRef{Item: r.Item}})
			}
		}
		b := bulkArgs{placeArgs: c.placeArgs, sureArgs: c.sureArgs, JSON: c.JSON}
		return b.bulk(ctx, a, e, seen, what, to, func(s act.SeenStep) (state.Transition, error) {
			return state.Transition{}, do(e, s.Item)
		})
	})
}
