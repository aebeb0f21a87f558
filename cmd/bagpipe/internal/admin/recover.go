package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/fixity"
	"bagpipe/layout"
	"bagpipe/steps"
)

// Recover fills a workspace from deposits.
type Recover struct {
	From    layout.Name `required:"" placeholder:"TARGET" help:"The target that holds the bags: store, or one of targets: in the settings."`
	Item    []string    `arg:"" optional:"" help:"Whole identifiers; default: all items that the target holds."`
	Records bool        `help:"Bring back the records alone; the bytes stay on the target."`
	JSON    bool        `name:"json" help:"Print JSON, one object a line."`
	Quiet   bool        `short:"q" help:"Print the summary alone."`
}

// Run prints each item that was recovered.
func (c *Recover) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		which := fixity.Recovery{From: c.From, Records: c.Records}
		for _, text := range c.Item {
			id, err := layout.ParseItemID(text)
			if err != nil {
				return err
			}
			which.Items = append(which.Items, id)
		}
		recovered, there := 0, 0
		wanting := map[string]bool{} // other targets of the items' collections
		err := e.Fixity.Recover(ctx, which, func(r fixity.Recovered) {
			if len(r.Versions) == 0 {
				there++
				return
			}
			recovered++
			targets, _ := e.Settings.Current().Settings.Goals(r.Collection)
			if len(targets) == 0 {
				targets = []string{string(steps.StoreTarget)}
			}
			for _, name := range targets {
				wanting[name] = name != string(c.From)
			}
			if c.JSON {
				if err := on.JSONLine(r); err != nil {
					on.Talk("bagpipe: %v", err)
				}
			} else if !c.Quiet {
				c.print(on, r)
			}
		})
		if !c.JSON && (err == nil || recovered+there > 0) {
			fmt.Fprintf(on.Out, "%s recovered from %s, %d there already\n", screen.Count(recovered, "item"), c.From, there)
			for _, name := range slices.Sorted(maps.Keys(wanting)) {
				if wanting[name] {
					on.Talk("what %s holds is not known; before the next run: bagpipe deposit copy --to %s", name, name)
				}
			}
		}
		return err
	})
}

func (c *Recover) print(on *screen.Screen, r fixity.Recovered) {
	text := screen.Count(len(r.Versions), "version")
	if r.Bytes != "" {
		text += ", bytes in " + r.Bytes + "/"
	}
	if len(r.Unknown) > 0 {
		text += "; not known: " + strings.Join(r.Unknown, "; ")
	}
	fmt.Fprintf(on.Out, "recovered  %s  %s/%s: %s\n", r.Item.Short(), r.Collection, r.Label, text)
}
