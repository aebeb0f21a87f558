package main

import (
	"fmt"

	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/layout"
)

type batchCmd struct {
	List  batchListCmd  `cmd:"" help:"List the batches."`
	Show  batchShowCmd  `cmd:"" help:"Show a batch and its items."`
	Close batchCloseCmd `cmd:"" help:"Close a batch: nothing is added to it any more."`
}

type batchListCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *batchListCmd) Run(a *app) error {
	return a.looking(func(e *engine.Engine) error {
		rows, err := e.Ask.Batches()
		if err != nil {
			return err
		}
		if c.JSON {
			return a.json(rows)
		}
		return printBatches(a, rows)
	})
}

func printBatches(a *app, rows []ask.BatchRow) error {
	if len(rows) == 0 {
		a.talk("no batches")
		return nil
	}
	t := newTable("batch", "opened", "closed", "items", "not done", "failed")
	for _, b := range rows {
		closed := "open"
		if !b.Closed.IsZero() {
			closed = when(b.Closed)
		}
		t.row(b.Batch, when(b.Opened), closed, b.Items, b.Open, b.Failed)
	}
	return t.print(a.out)
}

// batchArgs names a batch.
type batchArgs struct {
	Name string `arg:"" help:"The batch."`
	JSON bool   `name:"json" help:"Print JSON."`
}

type (
	batchShowCmd  struct{ batchArgs }
	batchCloseCmd struct{ batchArgs }
)

func (c *batchShowCmd) Run(a *app) error {
	return a.looking(func(e *engine.Engine) error {
		b, items, err := e.Ask.Batch(layout.Name(c.Name))
		if err != nil {
			return err
		}
		if c.JSON {
			return a.json(struct {
				ask.BatchRow
				Members []ask.ItemRow `json:"members"`
			}{b, items})
		}
		if err := printBatches(a, []ask.BatchRow{b}); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
		t := newTable("item", "label", "workflow", "status", "step", "why")
		for _, it := range items {
			t.row(it.Item.Short(), it.Label, it.Workflow, it.Status, it.Step, it.Why)
		}
		return t.print(a.out)
	})
}

func (c *batchCloseCmd) Run(a *app) error {
	return a.with(func(e *engine.Engine) error {
		if err := e.Act.CloseBatch(a.ctx, layout.Name(c.Name)); err != nil {
			return err
		}
		if c.JSON {
			return a.json(map[string]string{"batch": c.Name, "status": "closed"})
		}
		fmt.Fprintf(a.out, "%s: closed\n", c.Name)
		return nil
	})
}
