package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"bagpipe/cmd/bagpipe/internal/admin"
	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/export"
	"bagpipe/engine/fixity"
	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

type itemsCmd struct {
	itemFilter
	Sort     string `placeholder:"PATHS" help:"Sort by these, with commas between them; -PATH: the highest first; default: the oldest first."`
	Limit    int    `placeholder:"N" help:"N items alone."`
	Skip     int    `placeholder:"N" help:"Not the first N."`
	Parent   string `placeholder:"ITEM" help:"Only the children of this item."`
	Facets   bool   `help:"Count the items by the values they have in common, instead of listing them."`
	Warnings bool   `help:"List the steps that were completed with warnings, instead of the items."`

	Columns []string `placeholder:"PATHS" help:"Print these columns, with commas between them: item, label, status, step and others of the list, or paths of the records, as in metadata.title, source.bytes or execution.milestones.archived."`
	CSV     bool     `name:"csv" xor:"form" help:"Print comma-separated values, with a heading."`
	JSON    bool     `name:"json" xor:"form" help:"Print JSON."`
}

// Validate is called by kong.
func (c *itemsCmd) Validate() error {
	if c.Limit < 0 || c.Skip < 0 {
		return errors.New("--limit, --skip: expected a number from 0 up")
	}
	if c.Facets && (c.CSV || len(c.Columns) > 0) {
		return errors.New("--facets counts; leave --columns and --csv out")
	}
	if c.Warnings && (c.Facets || c.CSV || len(c.Columns) > 0) {
		return errors.New("--warnings lists steps; leave --facets, --columns and --csv out")
	}
	if err := ask.CheckColumns(c.Columns); err != nil {
		return fmt.Errorf("--columns: %w", err)
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
		if c.Warnings {
			return c.warnings(a, e, f, page)
		}
		if c.CSV || len(c.Columns) > 0 {
			return c.columns(a, e, f, page)
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

// warnings lists steps, and what their robots said.
func (c *itemsCmd) warnings(a *app, e *engine.Engine, f ask.Filter, page ask.Page) error {
	rows, err := ask.Warned(e.Ask.Lists, f, page)
	if err != nil {
		return err
	}
	a.tellMissing(f.Asked)
	if c.JSON {
		return a.JSON(rows)
	}
	if len(rows) == 0 {
		a.Talk("nothing was completed with warnings")
		return nil
	}
	t := screen.NewTable("item", "collection", "label", "workflow", "step", "message")
	for _, r := range rows {
		t.Row(r.Item.Short(), r.Collection, r.Label, r.Workflow, r.Step, r.Message)
	}
	if err := t.Print(a.Out); err != nil {
		return err
	}
	a.Talk("all of them: bagpipe show ITEM STEP --log")
	return nil
}

// listed are the columns of a listing.
var listed = []string{"item", "collection", "label", "workflow", "status", "step", "why"}

func (c *itemsCmd) columns(a *app, e *engine.Engine, f ask.Filter, page ask.Page) error {
	names := c.Columns
	if len(names) == 0 {
		names = listed
	}
	if f.Asked == nil {
		f.Asked = &ask.Asked{}
	}
	rows, err := e.Ask.Columns(f, page, names)
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		if err := f.Asked.Misspelt(names); err != nil {
			return screen.WrongUse("--columns: " + err.Error())
		}
		a.tellMissing(f.Asked)
	}
	switch {
	case c.JSON:
		return a.JSON(linesOf(rows, func(row []gjson.Result) map[string]json.RawMessage {
			out := map[string]json.RawMessage{}
			for i, v := range row {
				if out[names[i]] = json.RawMessage("null"); v.Exists() {
					out[names[i]] = json.RawMessage(jsonOf(v))
				}
			}
			return out
		}))
	case c.CSV:
		w := csv.NewWriter(a.Out)
		texts := append([][]string{names}, linesOf(rows, func(row []gjson.Result) []string { return linesOf(row, csvCell) })...)
		return w.WriteAll(texts)
	}
	t := screen.NewTable(linesOf(names, func(n string) any { return n })...)
	for _, row := range rows {
		t.Row(linesOf(row, func(v gjson.Result) any {
			if v.Type == gjson.Number {
				return screen.Figure(v.Raw)
			}
			return cellText(v)
		})...)
	}
	return t.Print(a.Out)
}

// cellText is a value on one line; what is no text or number as JSON.
func cellText(v gjson.Result) string {
	if v.IsObject() || v.IsArray() {
		return v.Get("@ugly").Raw
	}
	return v.String()
}

// csvCell is cellText that no spreadsheet runs; a number below zero is none that it would.
func csvCell(v gjson.Result) string {
	if v.Type == gjson.Number {
		return v.Raw
	}
	return export.Unformula(cellText(v))
}

// jsonOf is a value as JSON: that of an index is a text alone.
func jsonOf(v gjson.Result) []byte {
	if v.Type == gjson.String {
		text, _ := json.Marshal(v.Str) // a text always can be
		return text
	}
	return []byte(v.Raw)
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
	t := screen.NewTable("facet", "value", "items")
	for _, r := range rows {
		t.Row(r.Facet, r.Value, r.Items)
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
		case r.Held && why == "":
			why = "held " + r.HeldBy
		case r.Held:
			why = "held; " + why
		}
		workflow := r.Workflow
		if r.Others > 0 {
			workflow += fmt.Sprintf(" +%d", r.Others)
		}
		t.Row(r.Item.Short(), r.Collection, r.Label, workflow, r.Status, r.Step, why)
	}
	return t.Print(a.Out)
}

type exportCmds struct {
	Records exportCmd  `cmd:"" default:"withargs" help:"Write the history of items as PREMIS, METS, RDF (turtle, jsonld) or tables (csv, jsonl)."`
	Stac    admin.STAC `cmd:"" help:"Keep a folder up to date as a static STAC catalog of all items."`
}

// exportCmd writes the records of items in the field's formats.
type exportCmd struct {
	itemFilter
	Item   []string `arg:"" optional:"" help:"Identifier, the beginning of one, or label; default: all items that the options leave."`
	Format string   `required:"" short:"f" enum:"turtle,jsonld,premis,mets,csv,jsonl" placeholder:"FORMAT" help:"turtle, jsonld, premis, mets, csv or jsonl."`
	Table  string   `enum:"items,attempts,events,deposits,fixity" default:"items" help:"Of csv and jsonl: items, attempts, events, deposits or fixity."`
	Dip    string   `placeholder:"DIR" xor:"to" writes:"" help:"Of mets: a dissemination package of each item in this folder: its METS, its content, and an RO-Crate."`
	To     string   `placeholder:"DIR" xor:"to" writes:"" help:"Write a file for each item into this folder, which must not be there; default: standard output. premis and mets of several items need it."`
}

// Validate is called by kong.
func (c *exportCmd) Validate() error {
	if len(c.Item) > 0 && c.given() {
		return errors.New("name items, or narrow them by options: not both")
	}
	if c.Dip != "" && c.Format != string(export.METS) {
		return errors.New("--dip is for --format mets")
	}
	return c.placeArgs.Validate()
}

func (c *exportCmd) Run(ctx context.Context, a *app) error {
	return a.looking(ctx, func(e *engine.Engine) error {
		items, err := c.items(ctx, a, e)
		if err != nil {
			return err
		}
		if to := cmp.Or(c.Dip, c.To); to != "" {
			if err := admin.Outside(e, to); err != nil {
				return err
			}
		}
		f := export.Format(c.Format)
		if c.Dip != "" {
			return c.packages(ctx, a, e, items)
		}
		if c.To == "" {
			if f.Single() && len(items) != 1 {
				return fmt.Errorf("a %s document holds one item, and these are %d; write them into a folder with --to", f, len(items))
			}
			return e.Export.Write(ctx, a.Out, f, c.Table, items)
		}
		if err := e.Export.Folder(ctx, c.To, f, c.Table, items); err != nil {
			return err
		}
		a.Talk("%s: %s", c.To, screen.Count(len(items), "file"))
		return nil
	})
}

// packages writes a dissemination package of each item.
func (c *exportCmd) packages(ctx context.Context, a *app, e *engine.Engine, items []layout.ItemID) error {
	object := func(ctx context.Context, id layout.ItemID, to string) error {
		return fixity.Object(ctx, e.Fixity, id, to)
	}
	for _, id := range items {
		name, err := e.Export.Package(ctx, id, c.Dip, object)
		if err != nil {
			return err
		}
		fmt.Fprintln(a.Out, name)
	}
	return nil
}

// items are those named, or those that the options leave.
func (c *exportCmd) items(ctx context.Context, a *app, e *engine.Engine) (items []layout.ItemID, err error) {
	for _, ref := range c.Item {
		id, err := e.Ask.Resolve(ctx, ref)
		if err != nil {
			return nil, err
		}
		items = append(items, id)
	}
	if len(c.Item) > 0 {
		return items, nil
	}
	f := c.filter()
	rows, err := e.Ask.Items(f, ask.Page{})
	for _, row := range rows {
		items = append(items, row.Item)
	}
	a.tellMissing(f.Asked)
	return items, err
}
