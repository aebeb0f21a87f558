package main

import (
	"bagpipe/engine"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

type itemsCmd struct {
	Collection string `help:"Only this collection."`
	Workflow   string `help:"Only items with this workflow."`
	Step       string `help:"Only items with this step; with --status, in that status."`
	Status     string `enum:",waiting,in-progress,completed,skipped,failed,inactive" default:"" help:"waiting, in-progress, completed, skipped or failed; inactive, of a workflow."`
	Parent     string `placeholder:"ITEM" help:"Only the children of this item."`
	JSON       bool   `name:"json" help:"Print JSON."`
}

func (c *itemsCmd) Run(a *app) error {
	return a.looking(func(e *engine.Engine) error {
		parent := layout.ItemID("")
		if c.Parent != "" {
			var err error
			if parent, err = e.Resolve(a.ctx, c.Parent); err != nil {
				return err
			}
		}
		rows := e.Items(engine.Filter{Parent: parent, Collection: layout.Name(c.Collection), Workflow: c.Workflow,
			Step: layout.Name(c.Step), Status: state.Status(c.Status)})
		if c.JSON {
			return a.json(rows)
		}
		return printItems(a, rows)
	})
}

func printItems(a *app, rows []engine.ItemRow) error {
	if len(rows) == 0 {
		a.talk("no items")
		return nil
	}
	t := newTable("item", "collection", "label", "workflow", "status", "step", "why")
	for _, r := range rows {
		why := r.Why
		if r.Held {
			why = "held; " + why
		}
		t.row(r.Item.Short(), r.Collection, a.fit(r.Label, 40), r.Workflow, r.Status, r.Step, a.fit(why, 80))
	}
	return t.print(a.out)
}
