package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/condition"
	"bagpipe/layout"
	"bagpipe/templates"
)

type queueCmd struct {
	Which  string `arg:"" optional:"" placeholder:"QUEUE" help:"A named queue, or WORKFLOW, WORKFLOW/STEP or /STEP; default: all that is ready."`
	Where  string `placeholder:"CONDITION" help:"Only items of which this holds, as in 'metadata.year >= 1990'."`
	Limit  int    `placeholder:"N" help:"The first N alone."`
	For    string `placeholder:"WHO" enum:",robots,people" default:"" help:"Only steps that are ready for robots, or steps that wait for people."`
	People bool   `help:"Only steps that wait for people, as --for=people."`
	Count  bool   `help:"Print how many would be listed, alone."`
	Watch  bool   `help:"Stay, and print again when the answer is another; ends with Ctrl-C."`
	List   bool   `help:"List the queues, with how many are ready in each."`
	Verify bool   `help:"Read every item anew, and compare it with the queues' index."`
	Schema bool   `help:"Print the JSON Schema of named queues; needs no workspace."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Validate is called by kong.
func (c *queueCmd) Validate() error {
	if c.Limit < 0 {
		return errors.New("--limit: expected a number from 0 (all) up")
	}
	if c.List && (c.Which != "" || c.Where != "") {
		return errors.New("--list lists all queues; leave QUEUE and --where out")
	}
	if c.People {
		if c.For == ask.Robots {
			return errors.New("--people and --for=robots exclude each other")
		}
		c.For = ask.People
	}
	return checkWhere(c.Where)
}

// checkWhere refuses a condition that cannot be read, as a mistake in usage.
func checkWhere(text string) error {
	if text == "" {
		return nil
	}
	if _, err := condition.Parse(text); err != nil {
		return fmt.Errorf("--where %q: %w", text, err)
	}
	return nil
}

// where is a condition that was checked; nil: none.
func where(text string) *condition.Where {
	if text == "" {
		return nil
	}
	w, _ := condition.Parse(text) // was checked
	return w
}

func (c *queueCmd) Run(ctx context.Context, a *app) error {
	if c.Schema {
		_, err := a.Out.Write(templates.QueueSchema())
		return err
	}
	return a.looking(ctx, func(e *engine.Engine) error {
		if c.Verify {
			return c.verify(ctx, a, e)
		}
		if !c.Watch {
			return c.show(a, e)
		}
		return c.watch(ctx, a, e)
	})
}

// watch prints, and again whenever the branch has moved, or a time may have come, and
// the answer is another than before.
func (c *queueCmd) watch(ctx context.Context, a *app, e *engine.Engine) error {
	const look, most = 500 * time.Millisecond, 30 * time.Second
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	told, err := c.answer(e)
	if err != nil {
		return err
	}
	if err := c.show(a, e); err != nil {
		return err
	}
	asked := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := e.Ask.Refresh(ctx); err != nil {
				return err
			}
		}
		select {
		case <-e.Ask.Changed():
		default:
			if time.Since(asked) < most {
				continue
			}
		}
		asked = time.Now()
		now, err := c.answer(e)
		if err != nil {
			return err
		}
		if bytes.Equal(now, told) {
			continue
		}
		told = now
		fmt.Fprintf(a.Err, "\n%s\n", screen.When(asked))
		if err := c.show(a, e); err != nil {
			return err
		}
	}
}

// answer is what would be printed, to compare it.
func (c *queueCmd) answer(e *engine.Engine) ([]byte, error) {
	var answer any
	var err error
	switch {
	case c.List:
		answer, err = e.Ask.Queues()
	case c.Count:
		answer, err = e.Ask.CountQueue(c.ask())
	default:
		answer, err = e.Ask.Queue(c.ask())
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

func (c *queueCmd) ask() ask.QueueAsk {
	return ask.QueueAsk{Which: c.Which, Where: where(c.Where), For: c.For, Limit: c.Limit, Asked: &ask.Asked{}}
}

// tellRetrying counts what is not listed, as it failed and its next try has not come.
func (c *queueCmd) tellRetrying(a *app, e *engine.Engine) {
	workflow, step, _ := strings.Cut(c.Which, "/")
	n := 0
	for _, l := range e.Ask.Retrying(workflow, layout.Name(step)) {
		n += l.Items
	}
	if n > 0 && c.For != ask.People && c.Where == "" {
		a.Talk("%s: bagpipe failures --retrying", screen.CountVerb(n, "failed step waits for its next try", "failed steps wait for their next try"))
	}
}

func (c *queueCmd) show(a *app, e *engine.Engine) error {
	switch {
	case c.List:
		return c.list(a, e)
	case c.Count:
		wanted := c.ask()
		row, err := e.Ask.CountQueue(wanted)
		if err != nil {
			return err
		}
		a.tellMissing(wanted.Asked)
		if c.JSON {
			return a.JSON(row)
		}
		fmt.Fprintln(a.Out, row.Listed())
		return nil
	}
	wanted := c.ask()
	rows, err := e.Ask.Queue(wanted)
	if err != nil {
		return err
	}
	a.tellMissing(wanted.Asked)
	if c.JSON {
		return a.JSON(rows)
	}
	c.tellRetrying(a, e)
	if len(rows) == 0 {
		a.Talk("%s", map[string]string{"": "nothing is ready, and nothing waits for a person", ask.Robots: "nothing is ready", ask.People: "nothing waits for a person"}[c.For])
		return nil
	}
	t := screen.NewTable("item", "label", "workflow", "step", "lane", "since", "who")
	for _, r := range rows {
		who := "robot"
		switch {
		case r.Person:
			who = "person"
		case r.Why != "":
			who = "no one: " + r.Why
		}
		t.Row(r.Item.Short(), r.Label, r.Workflow, r.Step, r.Lane, screen.When(r.Since), who)
	}
	return t.Print(a.Out)
}

func (c *queueCmd) list(a *app, e *engine.Engine) error {
	rows, err := e.Ask.Queues()
	if err != nil {
		return err
	}
	if c.JSON {
		return a.JSON(rows)
	}
	if len(rows) == 0 {
		a.Talk("no queue has a name, and nothing is ready")
		return nil
	}
	t := screen.NewTable("queue", "ready", "for people", "")
	for _, r := range rows {
		t.Row(r.Queue, r.Ready, r.Person, r.Description)
	}
	return t.Print(a.Out)
}

func (c *queueCmd) verify(ctx context.Context, a *app, e *engine.Engine) error {
	v, err := e.Index.VerifyIndex(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		if err := a.JSON(v); err != nil {
			return err
		}
	} else if len(v.Differences) == 0 {
		fmt.Fprintf(a.Out, "%s; the queues are as the items are\n", screen.Count(v.Items, "item"))
	}
	for _, d := range v.Differences {
		a.Talk("%s", d)
	}
	if len(v.Differences) > 0 {
		return errors.New("the queues are not as the items are; delete .bagpipe/index, and report this")
	}
	return nil
}
