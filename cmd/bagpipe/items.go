package main

import (
	"context"
	"errors"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/ask"
)

type itemsCmd struct {
	itemFilter
	Sort   string `placeholder:"PATHS" help:"Sort by these, with commas between them; -PATH: the highest first; default: the oldest first."`
	Limit  int    `placeholder:"N" help:"N items alone."`
	Skip   int    `placeholder:"N" help:"Not the first N."`
	Parent string `placeholder:"ITEM" help:"Only the children of this item."`
	Facets bool   `help:"Count the items by what they have in common, instead of listing them."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Validate is called by kong.
func (c *itemsCmd) Validate() error {
	if c.Limit < 0 || c.Skip < 0 {
		return errors.New("--limit, --skip: expected a number from 0 up")
	}
	return c.placeArgs.Validate()
}

func (c *itemsCmd) Run(ctx context.Context, a *app) error {
	return a.looking(ctx, func(e *engine.Engine) error {
		f := c.filter()
		if c.Parent != "" {
			var err error
			if f.Parent, err = e.Ask.Resolve(ctx, c.Parent); err != nil {
				return err
			}
		}
		if c.Facets {
			return c.facets(a, e, f)
		}
		page := ask.Page{From: c.Skip, Limit: c.Limit}
		if c.Sort != "" {
			page.Sort, f.Asked = strings.Split(c.Sort, ","), &ask.Asked{}
		}
		rows, err := e.Ask.Items(f, page)
		if err != nil {
			return err
		}
		a.tellMissing(f.Asked)
		if c.JSON {
			return a.JSON(rows)
		}
		return printItems(a, rows)
	})
}

func (c *itemsCmd) facets(a *app, e *engine.Engine, f ask.Filter) error {
	rows, err := e.Ask.Facets(f)
	if err != nil {
		return err
	}
	a.tellMissing(f.Asked)
	if c.JSON {
		return a.JSON(rows)
	}
	t := screen.NewTable("facet", "items", "value")
	for _, r := range rows {
		t.Row(r.Facet, r.Items, r.Value)
	}
	return t.Print(a.Out)
}

func printItems(a *app, rows []ask.ItemRow) error {
	if len(rows) == 0 {
		a.Talk("no items")
		return nil
	}
	t := screen.NewTable("item", "collection", "label", "workflow", "status", "step", "why")
	for _, r := range rows {
		why := r.Why
		switch {
		case strings.HasPrefix(why, "is held by"):
			why = strings.TrimPrefix(why, "is ")
		case r.Held:
			why = "held; " + why
		}
		t.Row(r.Item.Short(), r.Collection, r.Label, r.Workflow, r.Status, r.Step, why)
	}
	return t.Print(a.Out)
}
