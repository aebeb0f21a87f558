package main

import (
	"fmt"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/layout"
)

type milestonesCmd struct {
	From       string `placeholder:"MILESTONE" help:"Measure from this one alone."`
	To         string `placeholder:"MILESTONE" help:"Measure to this one alone."`
	Collection string `help:"Only this collection."`
	Workflow   string `help:"Only items with this workflow."`
	JSON       bool   `name:"json" help:"Print JSON."`
}

func (c *milestonesCmd) Run(a *app) error {
	return a.looking(func(e *engine.Engine) error {
		f := ask.Filter{Collection: layout.Name(c.Collection), Workflow: c.Workflow}
		if err := e.Ask.CheckFilter(f); err != nil {
			return err
		}
		for _, name := range []string{c.From, c.To} {
			if err := e.Ask.CheckFilter(ask.Filter{Milestone: layout.Name(name)}); err != nil {
				return err
			}
		}
		m := e.Ask.Milestones(f, layout.Name(c.From), layout.Name(c.To))
		if c.JSON {
			return a.json(m)
		}
		if len(m.Milestones) == 0 {
			a.talk("no item has reached a milestone")
			return nil
		}
		t := newTable("milestone", "items", "first", "last")
		for _, r := range m.Milestones {
			t.row(r.Milestone, figure(fmt.Sprintf("%d of %d", r.Items, m.Items)), when(r.First), when(r.Last))
		}
		if err := t.print(a.out); err != nil {
			return err
		}
		if len(m.Spans) == 0 {
			if c.From != "" || c.To != "" {
				a.talk("no item reached what was asked for, one milestone after the other")
			}
			return nil
		}
		fmt.Fprintln(a.out)
		t = newTable("from", "to", "items", "median", "p90")
		for _, s := range m.Spans {
			t.row(s.From, s.To, s.Items, figure(took(s.Median)), figure(took(s.P90)))
		}
		return t.print(a.out)
	})
}

// took words a length of time for people: 3d 4h, 2h 5m, 12.3s.
func took(seconds float64) string {
	const minute, hour, day = 60, 3600, 86400
	pair := func(big, small int64, b, s string) string {
		n := int64(seconds)
		return fmt.Sprintf("%d%s %d%s", n/big, b, n%big/small, s)
	}
	switch {
	case seconds >= day:
		return pair(day, hour, "d", "h")
	case seconds >= hour:
		return pair(hour, minute, "h", "m")
	case seconds >= minute:
		return pair(minute, 1, "m", "s")
	}
	return (time.Duration(seconds*1000) * time.Millisecond).String()
}
