package main

import (
	"fmt"

	"bagpipe/engine"
	"bagpipe/engine/state"
)

// controlArgs are what disables or enables a step takes.
type controlArgs struct {
	Step    string `arg:"" placeholder:"WORKFLOW/STEP" help:"WORKFLOW/STEP, as in accession/ocr."`
	Message string `short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

type (
	stepDisableCmd struct{ controlArgs }
	stepEnableCmd  struct{ controlArgs }
)

func (c *stepDisableCmd) Run(a *app) error { return c.set(a, state.StepDisabled) }
func (c *stepEnableCmd) Run(a *app) error  { return c.set(a, state.StepEnabled) }

func (c *controlArgs) set(a *app, to state.ControlStatus) error {
	ref, err := state.ParseStepRef(c.Step)
	if err != nil {
		return err
	}
	return a.looking(func(e *engine.Engine) error {
		changed, err := e.Act.SetStep(a.ctx, ref, to, c.Message)
		if err != nil {
			return err
		}
		row := struct {
			Step    string              `json:"step"`
			Status  state.ControlStatus `json:"status"`
			Changed bool                `json:"changed"`
		}{ref.String(), to, changed}
		if c.JSON {
			return a.json(row)
		}
		if !changed {
			fmt.Fprintf(a.out, "%s is %s already\n", ref, to)
			return nil
		}
		fmt.Fprintf(a.out, "%s %s\n", ref, to)
		return nil
	})
}
