package main

import (
	"context"
	"fmt"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/layout"
)

type milestonesCmd struct {
	From       string `placeholder:"MILESTONE" help:"Measure from this one alone."`
	To         string `placeholder:"MILESTONE" help:"Measure to this one alone."`
	Collection string `placeholder:"NAME" help:"Only this collection."`
	Workflow   string `placeholder:"NAME" help:"Only items with this workflow."`
	JSON       bool   `name:"json" help:"Print JSON."`
}

func (c *milestonesCmd) Run(ctx context.Context, a *app) error {
	return a.looking(ctx, func(e *engine.Engine) error {
		f := ask.Filter{Collection: layout.Name(c.Collection), Workflow: c.Workflow}
		for _, name := range []string{c.From, c.To} {
			if err := e.Ask.CheckFilter(ask.Filter{Milestone: layout.Name(name)}); err != nil {
				return err
			}
		}
		m, err := e.Ask.Milestones(f, layout.Name(c.From), layout.Name(c.To))
		if err != nil {
			return err
		}
		if c.JSON {
			return a.JSON(m)
		}
		if len(m.Milestones) == 0 {
			a.Talk("no item has reached a milestone")
			return nil
		}
		t := screen.NewTable("milestone", "items", "first", "last")
		for _, r := range m.Milestones {
			t.Row(r.Milestone, screen.Figure(fmt.Sprintf("%d of %d", r.Items, m.Items)), screen.When(r.First), screen.When(r.Last))
		}
		if err := t.Print(a.Out); err != nil {
			return err
		}
		if len(m.Spans) == 0 {
			if c.From != "" || c.To != "" {
				a.Talk("no item reached what was asked for, one milestone after the other")
			}
			return nil
		}
		fmt.Fprintln(a.Out)
		t = screen.NewTable("from", "to", "items", "median", "p90")
		for _, s := range m.Spans {
			t.Row(s.From, s.To, s.Items, screen.Figure(screen.Took(s.Median)), screen.Figure(screen.Took(s.P90)))
		}
		return t.Print(a.Out)
	})
}
