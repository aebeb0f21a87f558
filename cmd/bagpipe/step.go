package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/act"
	"bagpipe/engine/attempt"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

type stepCmd struct {
	Complete stepCompleteCmd `cmd:"" help:"Complete a step, as a person: an approval, or work done by hand."`
	Skip     stepSkipCmd     `cmd:"" help:"Skip a step: it is not applicable to this item."`
	Fail     stepFailCmd     `cmd:"" help:"Fail a step: the producer must fix the drop."`
	Retry    stepRetryCmd    `cmd:"" help:"Let a failed step be tried again."`
	Reset    stepResetCmd    `cmd:"" help:"Let a step be done anew, whatever became of it."`
	Disable  stepDisableCmd  `cmd:"" help:"Take a step out of the flow, for all items."`
	Enable   stepEnableCmd   `cmd:"" help:"Let a step go on that is disabled, for all items."`
	Replay   stepReplayCmd   `cmd:"" help:"Run a step again, alone, on inputs it kept; the item does not change."`
	Progress stepProgressCmd `cmd:"" help:"Tell how far a step that runs has come."`
}

// stepArgs are what all acts on steps take.
type stepArgs struct {
	Names   []string `arg:"" name:"item" help:"ITEM STEP: the item, then STEP or WORKFLOW/STEP, as in accession.1/approve; with a filter, the step alone."`
	Message string   `short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
	bulkArgs
}

// validate checks them; status tells whether the act's own --status is given, which is a
// filter too.
func (c *stepArgs) validate(status bool) error {
	if err := c.placeArgs.Validate(); err != nil {
		return err
	}
	switch {
	case len(c.Names) == 1 && !c.given() && !status:
		return errors.New("expected ITEM STEP, or a filter such as --where and STEP")
	case len(c.Names) > 2:
		return errors.New("expected ITEM STEP")
	case len(c.Names) == 2 && status:
		return errors.New("--status is for acts without ITEM")
	case len(c.Names) == 2 && (c.given() || c.DryRun):
		return errors.New("filters and --dry-run are for acts without ITEM")
	}
	return nil
}

// decideArgs are what acts that end a step take besides.
type decideArgs struct {
	stepArgs
	Status    string   `placeholder:"STATUS" enum:",waiting,failed" default:"" help:"With a filter: end steps that are waiting, or failed; default: waiting, and with --failure failed."`
	Milestone []string `placeholder:"NAME" help:"A milestone that is reached by it, besides the step's own."`
}

// Validate is called by kong.
func (c *decideArgs) Validate() error {
	if err := c.validate(c.Status != ""); err != nil {
		return err
	}
	for _, m := range c.Milestone {
		if _, err := layout.ParseName(m); err != nil {
			return fmt.Errorf("--milestone: %w", err)
		}
	}
	return nil
}

type (
	stepCompleteCmd struct{ decideArgs }
	stepSkipCmd     struct{ decideArgs }
	stepFailCmd     struct{ decideArgs }
	stepRetryCmd    struct {
		stepArgs
		Status string `placeholder:"STATUS" enum:",failed" default:"" help:"With a filter, or as one: failed; only failed steps are tried again."`
		On     string `placeholder:"WORKER" help:"The worker that is to do it, and the item's other steps that are placed on workers."`
	}
)

// Validate is called by kong.
func (c *stepRetryCmd) Validate() error { return c.validate(c.Status != "") }

func (c *stepCompleteCmd) Run(ctx context.Context, a *app) error {
	return c.decide(ctx, a, state.Completed)
}
func (c *stepSkipCmd) Run(ctx context.Context, a *app) error { return c.decide(ctx, a, state.Skipped) }
func (c *stepFailCmd) Run(ctx context.Context, a *app) error { return c.decide(ctx, a, state.Failed) }

func (c *stepRetryCmd) Run(ctx context.Context, a *app) error {
	return c.act(ctx, a, state.Failed, state.Waiting, func(e *engine.Engine, ref ledger.StepRef) (state.Transition, error) {
		if err := onWorker(ctx, e, ref.Item, c.On); err != nil {
			return state.Transition{}, err
		}
		return e.Act.Retry(ctx, ref, c.Message)
	})
}

// onWorker notes the worker that is to do the placed steps of an item.
func onWorker(ctx context.Context, e *engine.Engine, id layout.ItemID, worker string) error {
	if worker == "" {
		return nil
	}
	if _, err := layout.ParseName(worker); err != nil {
		return screen.WrongUse("--on: " + err.Error())
	}
	err := act.Describe(ctx, e.Act, id, act.Description{Metadata: map[string]any{attempt.OnWorker: worker}}, "")
	var same *state.IllegalError
	if errors.As(err, &same) {
		return nil // it is so already
	}
	return err
}

func (c *decideArgs) decide(ctx context.Context, a *app, to state.Status) error {
	var names []layout.Name
	for _, m := range c.Milestone {
		names = append(names, layout.Name(m))
	}
	from := state.Waiting
	if c.Status == string(state.Failed) || c.Status == "" && c.Failure != "" {
		from = state.Failed
	}
	return c.act(ctx, a, from, to, func(e *engine.Engine, ref ledger.StepRef) (state.Transition, error) {
		return e.Act.Decide(ctx, ref, to, c.Message, names...)
	})
}

// splitStep reads STEP or WORKFLOW/STEP.
func splitStep(s string) (workflow string, step layout.Name, err error) {
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		workflow, s = s[:i], s[i+1:]
	}
	step, err = layout.ParseName(s)
	return workflow, step, err
}

// act does something to the step of the item, or of all that fit whose step is as from
// says.
func (c *stepArgs) act(ctx context.Context, a *app, from, to state.Status, do func(*engine.Engine, ledger.StepRef) (state.Transition, error)) error {
	workflow, step, err := splitStep(c.Names[len(c.Names)-1])
	if err != nil {
		return err
	}
	if len(c.Names) == 1 {
		return c.actOnAll(ctx, a, workflow, step, from, to, do)
	}
	return a.onItem(ctx, c.Names[0], func(e *engine.Engine, id layout.ItemID) error {
		tr, err := do(e, ledger.StepRef{Item: id, Workflow: workflow, Step: step})
		if err != nil {
			return err
		}
		if c.JSON {
			return a.JSON([]act.Done{{Item: id, Workflow: tr.Workflow, Step: tr.Step, From: tr.From}})
		}
		fmt.Fprintf(a.Out, "%s %s/%s: %s\n", id.Short(), tr.Workflow, tr.Step, moved(tr.From, tr.To))
		return nil
	})
}

// moved words a transition; of a step that stands as it did, what was done all the same.
func moved(from, to state.Status) string {
	switch {
	case from != to:
		return fmt.Sprintf("%s → %s", from, to)
	case to == state.Waiting:
		return "waits, and is tried at once"
	}
	return "stays " + string(to)
}

func (c *stepArgs) actOnAll(ctx context.Context, a *app, workflow string, step layout.Name, from, to state.Status, do func(*engine.Engine, ledger.StepRef) (state.Transition, error)) error {
	return a.looking(ctx, func(e *engine.Engine) error {
		f := c.filter()
		f.Workflow, f.Step, f.Status = workflow, step, from
		seen, err := e.Ask.Steps(f)
		if err != nil {
			return err
		}
		a.tellMissing(f.Asked)
		if all := len(seen); from == state.Waiting {
			seen = slices.DeleteFunc(seen, func(s act.SeenStep) bool { return s.Early })
			if n := all - len(seen); n > 0 {
				a.Talk("%s not come to %s yet", screen.CountVerb(n, "item has", "items have"), step)
			}
		}
		c.single = to == state.Completed
		return c.bulk(ctx, a, e, seen, "change "+string(step)+" of", string(to), func(s act.SeenStep) (state.Transition, error) { return do(e, s.StepRef) })
	})
}

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

func (c *stepDisableCmd) Run(ctx context.Context, a *app) error {
	return c.set(ctx, a, state.StepDisabled)
}
func (c *stepEnableCmd) Run(ctx context.Context, a *app) error {
	return c.set(ctx, a, state.StepEnabled)
}

func (c *controlArgs) set(ctx context.Context, a *app, to state.ControlStatus) error {
	ref, err := state.ParseStepRef(c.Step)
	if err != nil {
		return err
	}
	return a.looking(ctx, func(e *engine.Engine) error {
		changed, err := e.Act.SetStep(ctx, ref, to, c.Message)
		if err != nil {
			return err
		}
		row := struct {
			Step    string              `json:"step"`
			Status  state.ControlStatus `json:"status"`
			Changed bool                `json:"changed"`
		}{ref.String(), to, changed}
		if c.JSON {
			return a.JSON(row)
		}
		text := "%s %s\n"
		if !changed {
			text = "%s is %s already\n"
		}
		fmt.Fprintf(a.Out, text, ref, to)
		return nil
	})
}
