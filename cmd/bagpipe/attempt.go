package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/attempt"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

type stepReplayCmd struct {
	Item    string `arg:"" help:"Identifier, the beginning of one, or label."`
	Step    string `arg:"" help:"STEP, or WORKFLOW/STEP."`
	Attempt string `placeholder:"N" help:"The attempt whose inputs are used: N or N-ENGINE; default: the last one kept."`
	To      string `placeholder:"DIR" writes:"" help:"The folder to run it in, empty or not there; default: a new temporary one."`
	JSON    bool   `name:"json" help:"Print JSON; the robot's output goes to the log alone."`
}

func (c *stepReplayCmd) Run(ctx context.Context, a *app) error {
	workflow, step, err := splitStep(c.Step)
	if err != nil {
		return err
	}
	return a.onItem(ctx, c.Item, func(e *engine.Engine, id layout.ItemID) error {
		log := io.Writer(a.Err)
		if c.JSON {
			log = nil
		}
		r, err := e.Attempt.Replay(ctx, ledger.StepRef{Item: id, Workflow: workflow, Step: step},
			attempt.ReplayOptions{Attempt: c.Attempt, To: c.To, Log: log})
		if err != nil {
			return err
		}
		if err := c.print(a, r); err != nil {
			return err
		}
		if r.Status != "completed" && r.Status != "skipped" {
			return screen.ExitSomeFailed
		}
		return nil
	})
}

func (c *stepReplayCmd) print(a *app, r attempt.Replayed) error {
	if c.JSON {
		return a.JSON(r)
	}
	t := screen.NewTable()
	t.Row("step", fmt.Sprintf("%s/%s of %s, attempt %s", r.Workflow, r.Step, r.Item.Short(), r.Attempt))
	t.Row("result", fmt.Sprintf("%s (exit code %d)", r.Status, r.ExitCode))
	if r.Kind != "" {
		t.Row("kind", r.Kind)
	}
	if r.Message != "" {
		t.Row("message", r.Message)
	}
	for _, from := range slices.Sorted(maps.Keys(r.Outputs)) {
		t.Row("output", from+" → "+r.Outputs[from])
	}
	t.Row("folder", r.Dir)
	t.Row("log", filepath.Join(r.Dir, r.Log))
	return t.Print(a.Out)
}

type stepProgressCmd struct {
	Item    string `arg:"" help:"Identifier, the beginning of one, or label."`
	Step    string `arg:"" help:"STEP, or WORKFLOW/STEP."`
	Note    string `placeholder:"TEXT" help:"The part of the work that is being done."`
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

func (c *stepProgressCmd) Run(ctx context.Context, a *app) error {
	workflow, step, err := splitStep(c.Step)
	if err != nil {
		return err
	}
	return a.onItem(ctx, c.Item, func(e *engine.Engine, id layout.ItemID) error {
		return e.Act.Progress(ledger.StepRef{Item: id, Workflow: workflow, Step: step}, c.Attempt, c.Note, c.Percent)
	})
}
