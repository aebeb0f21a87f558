package main

import "bagpipe/engine"

type queueCmd struct {
	Which string `arg:"" optional:"" placeholder:"WORKFLOW/STEP" help:"WORKFLOW, WORKFLOW/STEP or /STEP; default: all."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

func (c *queueCmd) Run(a *app) error {
	return a.looking(func(e *engine.Engine) error {
		rows, err := e.Queue(c.Which)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.json(rows)
		}
		if len(rows) == 0 {
			a.talk("nothing is ready, and nothing waits for a person")
			return nil
		}
		t := newTable("item", "label", "workflow", "step", "lane", "since", "who")
		for _, r := range rows {
			who := "robot"
			switch {
			case r.Person:
				who = "person"
			case r.Why != "":
				who = "no one: " + a.fit(r.Why, 80)
			}
			t.row(r.Item.Short(), a.fit(r.Label, 40), r.Workflow, r.Step, r.Lane, when(r.Since), who)
		}
		return t.print(a.out)
	})
}
