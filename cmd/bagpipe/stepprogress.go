package main

import (
	"context"
	"errors"

	"bagpipe/engine"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

type stepProgressCmd struct {
	Item    string `arg:"" help:"Identifier, the beginning of one, or label."`
	Step    string `arg:"" help:"STEP, or WORKFLOW/STEP."`
	Note    string `placeholder:"TEXT" help:"What it is at."`
	Percent int    `default:"-1" placeholder:"N" help:"How much of it is done, 0 to 100."`
	Attempt string `env:"BAGPIPE_ATTEMPT" placeholder:"N-ENGINE" help:"The attempt that tells it; refused when another runs. A robot's own is taken from its environment."`
}

// Validate is called by kong.
func (c *stepProgressCmd) Validate() error {
	switch {
	case c.Percent < -1 || c.Percent > 100:
		return errors.New("--percent: expected 0 to 100")
	case c.Percent < 0 && c.Note == "":
		return errors.New("expected --note, --percent or both")
	}
	return nil
}

func (c *stepProgressCmd) Run(a *app) error {
	workflow, step, err := splitStep(c.Step)
	if err != nil {
		return err
	}
	return a.onItem(c.Item, func(_ context.Context, e *engine.Engine, id layout.ItemID) error {
		return e.Act.Progress(ledger.StepRef{Item: id, Workflow: workflow, Step: step}, c.Attempt, c.Note, c.Percent)
	})
}
