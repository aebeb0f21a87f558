package main

import (
	"context"
	"fmt"

	"bagpipe/engine"
	"bagpipe/layout"
)

type holdCmd struct {
	Item    string `arg:"" help:"Identifier, the beginning of one, or label."`
	Message string `short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
}

func (c *holdCmd) Run(a *app) error {
	return a.onItem(c.Item, func(ctx context.Context, e *engine.Engine, id layout.ItemID) error {
		if err := e.Hold(ctx, id, c.Message); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "%s held; let it go on with: bagpipe release %s\n", id.Short(), id.Short())
		return nil
	})
}

type releaseCmd struct {
	Item    string `arg:"" help:"Identifier, the beginning of one, or label."`
	Message string `short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
}

func (c *releaseCmd) Run(a *app) error {
	return a.onItem(c.Item, func(ctx context.Context, e *engine.Engine, id layout.ItemID) error {
		if err := e.Release(ctx, id, c.Message); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "%s released\n", id.Short())
		return nil
	})
}
