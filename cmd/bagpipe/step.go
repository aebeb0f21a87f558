package main

import (
	"context"
	"fmt"
	"strings"

	"bagpipe/engine"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

type stepCmd struct {
	Complete stepCompleteCmd `cmd:"" help:"Complete a step, as a person: approve, or what was done by hand."`
	Skip     stepSkipCmd     `cmd:"" help:"Skip a step: it is not applicable to this item."`
	Fail     stepFailCmd     `cmd:"" help:"Fail a step: the producer must fix what was dropped."`
	Retry    stepRetryCmd    `cmd:"" help:"Let a failed step be tried again."`
}

// stepArgs are what all acts on steps take.
type stepArgs struct {
	Item    string `arg:"" help:"Identifier, the beginning of one, or label."`
	Step    string `arg:"" help:"STEP, or WORKFLOW/STEP, as in accession.1/approve."`
	Message string `short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
}

type (
	stepCompleteCmd struct{ stepArgs }
	stepSkipCmd     struct{ stepArgs }
	stepFailCmd     struct{ stepArgs }
	stepRetryCmd    struct{ stepArgs }
)

func (c *stepCompleteCmd) Run(a *app) error { return c.decide(a, state.Completed) }
func (c *stepSkipCmd) Run(a *app) error     { return c.decide(a, state.Skipped) }
func (c *stepFailCmd) Run(a *app) error     { return c.decide(a, state.Failed) }

func (c *stepRetryCmd) Run(a *app) error {
	return c.act(a, func(e *engine.Engine, ref engine.StepRef) (state.Transition, error) {
		return e.Retry(a.ctx, ref, c.Message)
	})
}

func (c *stepArgs) decide(a *app, to state.Status) error {
	return c.act(a, func(e *engine.Engine, ref engine.StepRef) (state.Transition, error) {
		return e.Decide(a.ctx, ref, to, c.Message)
	})
}

func (c *stepArgs) act(a *app, act func(*engine.Engine, engine.StepRef) (state.Transition, error)) error {
	workflow, name := "", c.Step
	if i := strings.LastIndexByte(c.Step, '/'); i >= 0 {
		workflow, name = c.Step[:i], c.Step[i+1:]
	}
	step, err := layout.ParseName(name)
	if err != nil {
		return err
	}
	return a.onItem(c.Item, func(ctx context.Context, e *engine.Engine, id layout.ItemID) error {
		tr, err := act(e, engine.StepRef{Item: id, Workflow: workflow, Step: step})
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "%s %s/%s: %s → %s\n", id.Short(), tr.Workflow, tr.Step, tr.From, tr.To)
		return nil
	})
}

// onItem opens the workspace and finds the item.
func (a *app) onItem(ref string, f func(context.Context, *engine.Engine, layout.ItemID) error) error {
	return a.with(func(e *engine.Engine) error {
		id, err := e.Resolve(a.ctx, ref)
		if err != nil {
			return err
		}
		return f(a.ctx, e, id)
	})
}
