package admin

import (
	"context"
	"fmt"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/fixity"
	"bagpipe/layout"
)

// Deposit is for the copies of deposited items.
type Deposit struct {
	Copy depositCopy `cmd:"" help:"Add copies of deposited items on a target."`
}

type depositCopy struct {
	To    layout.Name `required:"" placeholder:"TARGET" help:"The target: store, or one of targets: in the settings."`
	Item  []string    `arg:"" optional:"" help:"Identifier, the beginning of one, or label; default: all items that were deposited."`
	JSON  bool        `name:"json" help:"Print JSON, one object a line."`
	Quiet bool        `short:"q" help:"Print the summary alone."`
}

// Run prints each item that was copied.
func (c *depositCopy) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		var items []layout.ItemID
		for _, ref := range c.Item {
			id, err := e.Ask.Resolve(ctx, ref)
			if err != nil {
				return err
			}
			items = append(items, id)
		}
		copied, there := 0, 0
		passed, err := e.Fixity.Copy(ctx, c.To, items, func(r fixity.Copied) {
			if copied++; len(r.Versions) == 0 {
				copied, there = copied-1, there+1
			}
			switch {
			case c.JSON:
				if err := on.JSONLine(r); err != nil {
					on.Talk("bagpipe: %v", err)
				}
			case c.Quiet:
			case len(r.Found) > 0:
				fmt.Fprintf(on.Out, "found   %s  %s/%s: %s, which no record had; checked\n", r.Item.Short(), r.Collection, r.Label, screen.Count(len(r.Found), "version"))
			}
			if !c.JSON && !c.Quiet && len(r.Versions) > 0 {
				fmt.Fprintf(on.Out, "copied  %s  %s/%s: %s, from %s; checked\n", r.Item.Short(), r.Collection, r.Label, screen.Count(len(r.Versions), "version"), r.From)
			}
		})
		if !c.JSON && (err == nil || copied+there > 0) {
			fmt.Fprintf(on.Out, "%s copied to %s, %d there already\n", screen.Count(copied, "item"), c.To, there)
		}
		if passed > 0 && !c.Quiet {
			on.Talk("%s worked on, and passed over", screen.CountVerb(passed, "item is being", "items are being"))
		}
		return err
	})
}
