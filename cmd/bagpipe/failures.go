package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/act"
	"bagpipe/engine/ask"
	"bagpipe/layout"
)

type failuresCmd struct {
	List  failuresListCmd  `cmd:"" default:"withargs" help:"Group the failures that wait for a person by workflow, step, kind and message."`
	Retry failuresRetryCmd `cmd:"" help:"Let whole groups be tried again."`
}

// failuresArgs narrow the failures.
type failuresArgs struct {
	Workflow string `placeholder:"NAME" help:"Only this workflow: accession or accession.1."`
	Step     string `placeholder:"NAME" help:"Only this step."`
}

func (c *failuresArgs) filter() ask.FailureFilter {
	return ask.FailureFilter{Workflow: c.Workflow, Step: layout.Name(c.Step)}
}

// check refuses names the workspace does not have: no failures would be no answer.
func (c *failuresArgs) check(e *engine.Engine) error {
	return e.Ask.CheckFilter(ask.Filter{Workflow: c.Workflow, Step: layout.Name(c.Step)})
}

type failuresListCmd struct {
	failuresArgs
	Retrying bool `help:"List the failures that are tried again by themselves, instead."`
	JSON     bool `name:"json" help:"Print JSON."`
}

// retrying lists what failed and waits for its next try.
func (c *failuresListCmd) retrying(a *app, e *engine.Engine) error {
	rows := e.Ask.Retrying(c.Workflow, layout.Name(c.Step))
	if c.JSON {
		return a.JSON(rows)
	}
	if len(rows) == 0 {
		a.Talk("nothing that failed is tried again by itself")
		return nil
	}
	t := screen.NewTable("step", "items", "failed", "since", "next try", "message")
	for _, r := range rows {
		t.Row(r.Step, r.Items, screen.Count(r.Failures, "time"), screen.When(r.Since), screen.When(r.Next), r.Text())
	}
	return t.Print(a.Out)
}

func (c *failuresListCmd) Run(ctx context.Context, a *app) error {
	return a.looking(ctx, func(e *engine.Engine) error {
		if err := c.check(e); err != nil {
			return err
		}
		if c.Retrying {
			return c.retrying(a, e)
		}
		groups := e.Ask.Failures(c.filter())
		if c.JSON {
			return a.JSON(groups)
		}
		if len(groups) == 0 {
			a.Talk("nothing that failed waits for a person")
			return nil
		}
		t := screen.NewTable("group", "items", "workflow", "step", "kind", "oldest", "newest", "message", "such as")
		now := time.Now()
		for _, g := range groups {
			t.Row(g.ID, g.Count, g.Workflow, g.Step, g.Kind, screen.Figure(screen.Age(now.Sub(g.Oldest))), screen.Figure(screen.Age(now.Sub(g.Newest))), causeText(g), exampleText(g))
		}
		return t.Print(a.Out)
	})
}

// causeText is the message of a group of one item as it stands, else that of the group, without
// what differs between its items.
func causeText(g ask.FailureGroup) string {
	if g.Count == 1 && len(g.Examples) == 1 {
		return g.Examples[0].Message
	}
	return g.Message
}

func exampleText(g ask.FailureGroup) string {
	var ids []string
	for _, x := range g.Examples {
		id := x.Item.Short()
		if x.Parent != "" {
			id += " (child of " + x.Parent.Short() + ")"
		}
		ids = append(ids, id)
	}
	if g.Count > len(ids) {
		ids = append(ids, "…")
	}
	return strings.Join(ids, " ")
}

type failuresRetryCmd struct {
	Group []string `arg:"" optional:"" help:"Groups, as bagpipe failures prints them."`
	failuresArgs
	Text  string `name:"message" short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
	Match string `name:"match" aliases:"failure" placeholder:"TEXT" help:"Only where the message holds this."`
	sureArgs
	JSON bool `name:"json" help:"Print JSON."`
}

// Validate is called by kong.
func (c *failuresRetryCmd) Validate() error {
	if len(c.Group) == 0 && c.Workflow == "" && c.Step == "" && c.Match == "" {
		return errors.New("expected GROUP…, or some of --workflow, --step, --match")
	}
	return nil
}

func (c *failuresRetryCmd) Run(ctx context.Context, a *app) error {
	return a.looking(ctx, func(e *engine.Engine) error {
		groups, err := c.groups(e)
		if err != nil {
			return err
		}
		all := 0
		for _, g := range groups {
			all += g.Count
		}
		if err := c.sure(a, all, "try again", "failure"); err != nil {
			return err
		}
		rows, err := e.Act.RetryFailures(ctx, ask.Members(groups), c.Text, c.DryRun)
		if err != nil {
			return err
		}
		return c.print(a, rows)
	})
}

func (c *failuresRetryCmd) groups(e *engine.Engine) (groups []ask.FailureGroup, err error) {
	if err := c.check(e); err != nil {
		return nil, err
	}
	f := c.filter()
	f.Message = c.Match
	if len(c.Group) == 0 {
		return e.Ask.Failures(f), nil
	}
	for _, id := range c.Group {
		f.Group = id
		found := e.Ask.Failures(f)
		switch {
		case len(found) == 0:
			return nil, fmt.Errorf("no group %q; bagpipe failures lists them", id)
		case len(found) > 1:
			return nil, fmt.Errorf("%q is the beginning of %d groups; bagpipe failures lists them", id, len(found))
		}
		groups = append(groups, found[0])
	}
	return groups, nil
}

func (c *failuresRetryCmd) print(a *app, rows []act.Retried) error {
	refused := 0
	for _, r := range rows {
		if r.Refused != "" {
			refused++
		}
	}
	if c.JSON {
		if err := a.JSON(rows); err != nil {
			return err
		}
	} else {
		c.talk(a, rows, refused)
	}
	if refused > 0 {
		return screen.ExitError
	}
	return nil
}

func (c *failuresRetryCmd) talk(a *app, rows []act.Retried, refused int) {
	for _, r := range rows {
		switch {
		case r.Refused != "":
			a.Talk("bagpipe: %s: %s", r.Item.Short(), r.Refused)
		case c.DryRun:
			fmt.Fprintf(a.Out, "%s  %s  %s\n", r.Item.Short(), strings.TrimSuffix(r.Workflow+"/"+string(r.Step), "/"), r.Label)
		}
	}
	done := len(rows) - refused
	switch {
	case c.DryRun:
		fmt.Fprintf(a.Out, "%s would be tried again\n", screen.Count(done, "failure"))
	case done == 0:
		fmt.Fprintln(a.Out, "no failure waits again")
	default:
		fmt.Fprintf(a.Out, "%s again; do them with: bagpipe run\n", screen.CountVerb(done, "failure waits", "failures wait"))
	}
}
