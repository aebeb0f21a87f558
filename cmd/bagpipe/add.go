package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/intake"
	"bagpipe/engine/queue"
	"bagpipe/layout"
)

type addCmd struct {
	Paths      []string `arg:"" name:"path" writes:"move" help:"Files, folders or archives; each becomes one item."`
	Workflow   string   `placeholder:"NAME" help:"The workflow; default: the rules' or the collection's."`
	Collection string   `placeholder:"NAME" help:"The collection, in place of the rules'; default: the rules', or default."`
	Label      string   `help:"The item's label; default: the path's name. For one path only."`
	Lane       string   `placeholder:"NAME" help:"The lane (priority)."`
	Batch      string   `placeholder:"NAME" help:"The batch it belongs to; begun by its first item."`
	BatchClose bool     `help:"Close the batch afterwards, if everything was taken in."`
	Move       bool     `help:"Move the source instead of copying it."`
	VersionOf  string   `placeholder:"ITEM" help:"The item that it becomes the next version of. For one path only."`
	Wait       bool     `help:"Stay until the items are done, failed, or wait for people."`
	JSON       bool     `name:"json" help:"One JSON object a line."`
}

// Validate is called by kong.
func (c *addCmd) Validate() error {
	if c.Label != "" && len(c.Paths) > 1 {
		return errors.New("--label is for one path")
	}
	if c.VersionOf != "" && len(c.Paths) > 1 {
		return errors.New("--version-of is for one path")
	}
	if c.BatchClose && c.Batch == "" {
		return errors.New("--batch-close is for --batch")
	}
	if c.Batch != "" {
		if _, err := layout.ParseName(c.Batch); err != nil {
			return fmt.Errorf("--batch: %w", err)
		}
	}
	if c.Collection == "" {
		return nil
	}
	_, err := layout.ParseName(c.Collection)
	return err
}

// Run takes in every path it can; one that cannot be does not keep the others.
func (c *addCmd) Run(ctx context.Context, a *app) error {
	return a.with(ctx, func(e *engine.Engine) error {
		var of layout.ItemID
		var err error
		if c.VersionOf != "" {
			if of, err = e.Ask.Resolve(ctx, c.VersionOf); err != nil {
				return err
			}
		}
		failed, cut, taken := false, false, map[layout.ItemID]bool{}
		err = e.Intake.AddAll(ctx, c.Paths, intake.AddOptions{
			Workflow: c.Workflow, Collection: layout.Name(c.Collection), Label: c.Label, Lane: c.Lane, Move: c.Move, Batch: layout.Name(c.Batch), VersionOf: of,
		}, func(got intake.Admitted, err error) {
			switch {
			case err != nil && errors.Is(err, context.Canceled): // one line for all of them
				cut = true
				return
			case err != nil:
				a.Talk("bagpipe: %s", errorText(err))
				failed = true
				return
			case got.Rejected != "":
				failed = true
			default:
				taken[got.Item] = true
			}
			c.print(a, got)
		})
		if cut && err == nil {
			err = context.Canceled
		}
		if errors.Is(err, context.Canceled) {
			a.Talk("bagpipe: %d of %d paths were taken in", len(taken), len(c.Paths))
		}
		if err != nil {
			return err
		}
		if failed {
			return screen.ExitError
		}
		if c.BatchClose {
			if err := e.Act.CloseBatch(ctx, layout.Name(c.Batch)); err != nil {
				return err
			}
		}
		if !c.Wait {
			return nil
		}
		return a.waitFor(ctx, e, func(it *queue.Item) bool { return taken[it.ID] })
	})
}

func (c *addCmd) print(a *app, got intake.Admitted) {
	switch {
	case c.JSON:
		line, _ := json.Marshal(got) // strings alone: always encodes
		fmt.Fprintf(a.Out, "%s\n", line)
	case got.Rejected != "":
		a.Talk("%s", admittedText(got))
	default:
		version := ""
		if got.Version > 0 {
			version = fmt.Sprintf("  (version %d)", got.Version)
		}
		fmt.Fprintf(a.Out, "%s  %s/%s%s\n", got.Item, got.Collection, got.Label, version)
	}
}

func admittedText(got intake.Admitted) string {
	if got.Rejected != "" {
		return fmt.Sprintf("rejected    %s/%s: %s (kept as %s)", got.Collection, got.Label, got.Rejected, got.KeptAs)
	}
	if got.Version > 0 {
		return fmt.Sprintf("version %d   %s  %s/%s", got.Version, got.Item.Short(), got.Collection, got.Label)
	}
	return fmt.Sprintf("registered  %s  %s/%s", got.Item.Short(), got.Collection, got.Label)
}
