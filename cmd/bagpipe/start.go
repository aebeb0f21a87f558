package main

import (
	"context"
	"fmt"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

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

func (c *startCmd) Run(a *app) error {
	return a.onItem(c.Item, func(ctx context.Context, e *engine.Engine, id layout.ItemID) error {
		name, err := e.Act.Start(ctx, id, c.Workflow, c.from)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.json(struct {
				Item      layout.ItemID `json:"item"`
				Workflow  string        `json:"workflow"`
				NotBefore time.Time     `json:"notBefore,omitzero"`
			}{id, name, c.from})
		}
		if c.from.IsZero() {
			fmt.Fprintf(a.out, "%s %s started\n", id.Short(), name)
			return nil
		}
		fmt.Fprintf(a.out, "%s %s started; nothing of it is done before %s\n", id.Short(), name, layout.FormatTime(c.from))
		return nil
	})
}
