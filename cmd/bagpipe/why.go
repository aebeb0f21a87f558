package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/layout"
)

type whyCmd struct {
	Item string `arg:"" help:"Identifier, the beginning of one, or label."`
	Step string `arg:"" optional:"" help:"STEP, or WORKFLOW/STEP; default: every step that is not done."`
	JSON bool   `name:"json" help:"Print JSON."`
}

func (c *whyCmd) Run(ctx context.Context, a *app) error {
	var workflow string
	var step layout.Name
	if c.Step != "" {
		var err error
		if workflow, step, err = splitStep(c.Step); err != nil {
			return err
		}
	}
	return a.looking(ctx, func(e *engine.Engine) error {
		id, err := e.Ask.Resolve(ctx, c.Item)
		if fault.Is(err, fault.NotFound) {
			return c.drops(ctx, a, e, err)
		}
		if err != nil {
			return err
		}
		x, err := e.Ask.Why(id, workflow, step)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.JSON(x.Said(remedyWords{}))
		}
		fmt.Fprintf(a.Out, "%s  %s\n", id.Short(), x.Label)
		if x.Why != "" {
			fmt.Fprintf(a.Out, "  %s\n", screen.Local(withRemedies(x.Why, x.Remedy)))
		}
		said := map[string]bool{} // what helps a step stands once, not below those that wait for it as well
		for i := 0; i < len(x.Steps); i++ {
			w := x.Steps[i]
			steps := string(w.Step)
			for ; i+1 < len(x.Steps) && x.Steps[i+1].Workflow == w.Workflow && x.Steps[i+1].Why == w.Why; i++ { // they wait for the same
				steps += ", " + string(x.Steps[i+1].Step)
			}
			fmt.Fprintf(a.Out, "  %s/%s: %s\n", w.Workflow, steps, screen.Local(w.Why))
			for _, r := range []ask.Remedy{w.Remedy, w.Again, w.Instead} {
				if command := shellText(r); command != "" && !said[command] {
					said[command] = true
					fmt.Fprintf(a.Out, "    %s\n", command)
				}
			}
		}
		for _, d := range x.Deliveries {
			fmt.Fprintf(a.Out, "  delivery %s\n", screen.Local(d.String()))
			for _, verb := range deliveryVerbs[d.State] {
				fmt.Fprintf(a.Out, "    bagpipe delivery %s %s --to %s\n", verb, x.Item.Short(), d.Target)
			}
		}
		return nil
	})
}

// deliveryVerbs are what a person may do about a delivery in a state.
var deliveryVerbs = map[string][]string{layout.DeliveryWaits: {"approve", "refuse"}, layout.DeliveryFailed: {"retry"}, layout.DeliveryUnconfirmed: {"withdraw"}}

// drops says why what has the name of no item is none yet, or else what none said.
func (c *whyCmd) drops(ctx context.Context, a *app, e *engine.Engine, none error) error {
	rows, err := e.Ask.Called(ctx, c.Item)
	if err != nil || len(rows) == 0 {
		return errors.Join(none, err)
	}
	if c.JSON {
		return a.JSON(map[string]any{"drops": rows})
	}
	for _, r := range rows {
		fmt.Fprintln(a.Out, screen.Local(r.String()))
	}
	return nil
}

type stalledCmd struct {
	Longer time.Duration `name:"longer-than" placeholder:"TIME" help:"List the steps that have not moved for so long, as in 36h, for any reason."`
	JSON   bool          `name:"json" help:"Print JSON."`
}

func (c *stalledCmd) Run(ctx context.Context, a *app) error {
	return a.looking(ctx, func(e *engine.Engine) error {
		rows := e.Ask.Stalled(c.Longer, 0)
		if c.JSON {
			return a.JSON(ask.StalledIn(remedyWords{}, rows))
		}
		if len(rows) == 0 {
			a.Talk("nothing has stalled")
			return nil
		}
		t := screen.NewTable("item", "label", "workflow", "step", "for", "usual", "why")
		for _, r := range rows {
			usual := ""
			if r.Usual > 0 {
				usual = screen.Age(time.Duration(r.Usual * float64(time.Second)))
			}
			t.Row(r.Item.Short(), r.Label, r.Workflow, r.Step, screen.Figure(screen.Age(time.Duration(r.For*float64(time.Second)))), screen.Figure(usual), screen.Local(r.Why))
		}
		return t.Print(a.Out)
	})
}

type statsCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *statsCmd) Run(ctx context.Context, a *app) error {
	return a.looking(ctx, func(e *engine.Engine) error {
		s := e.Ask.Stats()
		if c.JSON {
			return a.JSON(s.Said(remedyWords{}))
		}
		if len(s.Steps) == 0 {
			a.Talk("no items")
			return nil
		}
		t := screen.NewTable("workflow", "step", "ready", "for people", "running", "done", "failed", "attempts", "failing", "waited", "95 %", "ran", "95 %", "cpu", "idle", "hour", "day")
		seconds := func(n float64) screen.Figure {
			return screen.Figure(time.Duration(n * float64(time.Second)).Round(time.Millisecond).String())
		}
		for _, r := range s.Steps {
			t.Row(r.Workflow, r.Step, r.Ready, r.Person, r.Running, r.Done(), r.Failed, r.Attempts, screen.Figure(fmt.Sprintf("%.0f %%", 100*r.FailureRate)),
				seconds(r.WaitMedian), seconds(r.WaitP95), seconds(r.RunMedian), seconds(r.RunP95), seconds(r.CPU), seconds(r.Idle), r.LastHour, r.LastDay)
		}
		if err := t.Print(a.Out); err != nil {
			return err
		}
		a.List("Advice", linesOf(s.Advice, adviceLine))
		return nil
	})
}
