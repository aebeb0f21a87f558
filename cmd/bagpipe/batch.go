package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/queue"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

type batchCmd struct {
	List  batchListCmd  `cmd:"" default:"withargs" help:"List the batches."`
	Show  batchShowCmd  `cmd:"" help:"Show a batch and its items."`
	Close batchCloseCmd `cmd:"" help:"Close a batch: nothing is added to it any more."`
}

type batchListCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *batchListCmd) Run(ctx context.Context, a *app) error {
	return a.looking(ctx, func(e *engine.Engine) error {
		rows, err := e.Ask.Batches()
		if err != nil {
			return err
		}
		if c.JSON {
			return a.JSON(rows)
		}
		return printBatches(a, rows)
	})
}

func printBatches(a *app, rows []ask.BatchRow) error {
	if len(rows) == 0 {
		a.Talk("no batches")
		return nil
	}
	t := screen.NewTable("batch", "opened", "closed", "items", "not done", "failed")
	for _, b := range rows {
		closed := "open"
		if !b.Closed.IsZero() {
			closed = screen.When(b.Closed)
		}
		t.Row(b.Batch, screen.When(b.Opened), closed, b.Items, b.Open, b.Failed)
	}
	return t.Print(a.Out)
}

// batchArgs names a batch.
type batchArgs struct {
	Name string `arg:"" help:"The batch."`
	JSON bool   `name:"json" help:"Print JSON."`
}

type (
	batchShowCmd  struct{ batchArgs }
	batchCloseCmd struct {
		batchArgs
		Wait bool `help:"Stay until its items are done, failed, or wait for people."`
	}
)

// waitFor stays until the items that fit are done, failed, or wait for people alone; others do
// the work.
func (a *app) waitFor(ctx context.Context, e *engine.Engine, fits func(*queue.Item) bool) error {
	const look = 300 * time.Millisecond
	told := ""
	if err := e.Index.Load(ctx); err != nil {
		return err
	}
	for {
		if err := e.Ask.Refresh(ctx); err != nil {
			return err
		}
		underWay, people, failed := e.Ask.Progress(fits)
		if underWay == 0 {
			if people > 0 {
				a.Talk("%s for people", screen.CountVerb(people, "item waits", "items wait"))
			}
			if failed > 0 {
				a.Talk("%s failed; bagpipe failures says why", screen.Count(failed, "item"))
				return screen.ExitSomeFailed
			}
			return nil
		}
		if now := screen.CountVerb(underWay, "item is under way", "items are under way"); now != told {
			told = now
			a.Talk("%s", now)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
	}
}

func (c *batchShowCmd) Run(ctx context.Context, a *app) error {
	return a.looking(ctx, func(e *engine.Engine) error {
		b, items, err := e.Ask.Batch(layout.Name(c.Name))
		if err != nil {
			return err
		}
		if c.JSON {
			return a.JSON(struct {
				ask.BatchRow
				Members []ask.ItemRow `json:"members"`
			}{b, items})
		}
		if err := printBatches(a, []ask.BatchRow{b}); err != nil {
			return err
		}
		fmt.Fprintln(a.Out)
		return printMembers(a, items)
	})
}

// printMembers lists the items of a batch, or the children of an item.
func printMembers(a *app, rows []ask.ItemRow) error {
	t := screen.NewTable("item", "label", "workflow", "status", "step", "why")
	for _, r := range rows {
		t.Row(r.Item.Short(), r.Label, r.Workflow, r.Status, r.Step, r.Why)
	}
	return t.Print(a.Out)
}

func (c *batchCloseCmd) Run(ctx context.Context, a *app) error {
	return a.with(ctx, func(e *engine.Engine) error {
		if err := e.Act.CloseBatch(ctx, layout.Name(c.Name)); err != nil {
			return err
		}
		if c.JSON {
			if err := a.JSON(map[string]string{"batch": c.Name, "status": "closed"}); err != nil {
				return err
			}
		} else {
			fmt.Fprintf(a.Out, "%s: closed\n", c.Name)
		}
		if !c.Wait {
			return nil
		}
		return a.waitFor(ctx, e, func(it *queue.Item) bool { return it.Batch == c.Name })
	})
}

type collectionCmd struct {
	Add  collectionAddCmd  `cmd:"" workspace:"" help:"Add a collection: a folder in the inbox, with its settings."`
	List collectionListCmd `cmd:"" default:"withargs" help:"List the collections."`
}

type collectionAddCmd struct {
	Name     string   `arg:"" help:"Letters, digits, '.', '_' and '-'."`
	Workflow string   `placeholder:"NAME" help:"The workflow of its drops; default: defaults in bagpipe.yaml."`
	Lane     string   `placeholder:"NAME" help:"The lane (priority); default: defaults in bagpipe.yaml."`
	Approval []string `placeholder:"STEP" help:"A step that a person must complete for each item, such as approve."`
}

func (c *collectionAddCmd) Run(ctx context.Context, a *app) error {
	name, err := layout.ParseName(c.Name)
	if err != nil {
		return err
	}
	return a.with(ctx, func(e *engine.Engine) error {
		if err := e.Settings.AddCollection(ctx, name, settings.Collection{Workflow: c.Workflow, Lane: c.Lane, Approvals: c.Approval}); err != nil {
			return err
		}
		fmt.Fprintf(a.Out, "Drop content into %s\n", layout.InboxDir+"/"+c.Name)
		return nil
	})
}

type collectionListCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *collectionListCmd) Run(ctx context.Context, a *app) error {
	return a.with(ctx, func(e *engine.Engine) error {
		rows, err := e.Ask.Collections()
		if err != nil {
			return err
		}
		if c.JSON {
			return a.JSON(rows)
		}
		t := screen.NewTable("collection", "workflow", "lane", "approvals", "inbox folder")
		for _, r := range rows {
			folder := "yes"
			if !r.Folder {
				folder = "no"
			}
			t.Row(r.Name, r.Workflow, r.Lane, strings.Join(r.Approvals, ", "), folder)
		}
		return t.Print(a.Out)
	})
}
