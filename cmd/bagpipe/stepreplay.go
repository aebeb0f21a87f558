package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"bagpipe/engine"
	"bagpipe/engine/attempt"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

type stepReplayCmd struct {
	Item    string `arg:"" help:"Identifier, the beginning of one, or label."`
	Step    string `arg:"" help:"STEP, or WORKFLOW/STEP."`
	Attempt string `placeholder:"N" help:"The attempt whose inputs are used: N or N-ENGINE; default: the last one kept."`
	To      string `placeholder:"DIR" help:"The folder to run it in, empty or not there; default: a new temporary one."`
	JSON    bool   `name:"json" help:"Print JSON; the robot's output goes to the log alone."`
}

func (c *stepReplayCmd) Run(a *app) error {
	workflow, step, err := splitStep(c.Step)
	if err != nil {
		return err
	}
	return a.onItem(c.Item, func(_ context.Context, e *engine.Engine, id layout.ItemID) error {
		log := io.Writer(a.err)
		if c.JSON {
			log = nil
		}
		r, err := e.Attempt.Replay(a.ctx, ledger.StepRef{Item: id, Workflow: workflow, Step: step},
			attempt.ReplayOptions{Attempt: c.Attempt, To: c.To, Log: log})
		if err != nil {
			return err
		}
		if err := c.print(a, r); err != nil {
			return err
		}
		if r.Status != "completed" && r.Status != "skipped" {
			return exit(exitSomeFailed)
		}
		return nil
	})
}

func (c *stepReplayCmd) print(a *app, r attempt.Replayed) error {
	if c.JSON {
		return a.json(r)
	}
	t := newTable()
	t.row("step", fmt.Sprintf("%s/%s of %s, attempt %s", r.Workflow, r.Step, r.Item.Short(), r.Attempt))
	t.row("result", fmt.Sprintf("%s (exit code %d)", r.Status, r.ExitCode))
	if r.Kind != "" {
		t.row("kind", r.Kind)
	}
	if r.Message != "" {
		t.row("message", r.Message)
	}
	for _, from := range slices.Sorted(maps.Keys(r.Outputs)) {
		t.row("output", from+" → "+r.Outputs[from])
	}
	t.row("folder", r.Dir)
	t.row("log", filepath.Join(r.Dir, r.Log))
	return t.print(a.out)
}
