package main

import (
	"fmt"
	"strings"

	"bagpipe/engine"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

type collectionCmd struct {
	Add  collectionAddCmd  `cmd:"" help:"Add a collection: a folder in the inbox, with its settings."`
	List collectionListCmd `cmd:"" help:"List the collections."`
}

type collectionAddCmd struct {
	Name     string   `arg:"" help:"Letters, digits, '.', '_' and '-'."`
	Workflow string   `help:"The workflow of what is dropped there; default: defaults in bagpipe.yaml."`
	Lane     string   `help:"The lane (priority); default: defaults in bagpipe.yaml."`
	Approval []string `placeholder:"STEP" help:"A step that a person must complete for each item, such as approve."`
}

func (c *collectionAddCmd) Run(a *app) error {
	name, err := layout.ParseName(c.Name)
	if err != nil {
		return err
	}
	return a.with(func(e *engine.Engine) error {
		if err := e.Settings.AddCollection(a.ctx, name, settings.Collection{Workflow: c.Workflow, Lane: c.Lane, Approvals: c.Approval}); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "Drop content into %s\n", layout.InboxDir+"/"+c.Name)
		return nil
	})
}

type collectionListCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *collectionListCmd) Run(a *app) error {
	return a.with(func(e *engine.Engine) error {
		rows, err := e.Ask.Collections()
		if err != nil {
			return err
		}
		if c.JSON {
			return a.json(rows)
		}
		t := newTable("collection", "workflow", "lane", "approvals", "inbox folder")
		for _, r := range rows {
			folder := "yes"
			if !r.Folder {
				folder = "no"
			}
			t.row(r.Name, r.Workflow, r.Lane, strings.Join(r.Approvals, ", "), folder)
		}
		return t.print(a.out)
	})
}
