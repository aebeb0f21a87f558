package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/act"
	"bagpipe/engine/ask"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// holdArgs are what hold and release take.
type holdArgs struct {
	Item    string `arg:"" optional:"" help:"Identifier, the beginning of one, or label; without it: every item that fits the filter."`
	Message string `short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
	itemFilter
	sureArgs
	JSON bool `name:"json" help:"Print JSON."`
}

// Validate is called by kong.
func (c *holdArgs) Validate() error {
	if (c.Item == "") != c.given() {
		return errors.New("expected ITEM, or a filter such as --where")
	}
	if c.Item != "" && c.DryRun {
		return errors.New("--dry-run is for acts without ITEM")
	}
	return c.placeArgs.Validate()
}

type (
	holdCmd    struct{ holdArgs }
	releaseCmd struct{ holdArgs }
)

func (c *holdCmd) Run(ctx context.Context, a *app) error {
	do := func(e *engine.Engine, id layout.ItemID) error {
		return e.Act.Hold(ctx, id, c.Message)
	}
	if c.Item == "" {
		return c.all(ctx, a, "hold", "held", func(r ask.ItemRow) bool { return !r.Held }, do)
	}
	return c.one(ctx, a, do, func(item string) string {
		return item + " held; let it go on with: bagpipe release " + item
	})
}

func (c *releaseCmd) Run(ctx context.Context, a *app) error {
	do := func(e *engine.Engine, id layout.ItemID) error {
		return e.Act.Release(ctx, id, c.Message)
	}
	if c.Item == "" {
		return c.all(ctx, a, "release", "released", func(r ask.ItemRow) bool { return r.Held }, do)
	}
	return c.one(ctx, a, do, func(item string) string { return item + " released" })
}

// one acts on the item named.
func (c *holdArgs) one(ctx context.Context, a *app, do func(*engine.Engine, layout.ItemID) error, said func(item string) string) error {
	return a.onItem(ctx, c.Item, func(e *engine.Engine, id layout.ItemID) error {
		if err := do(e, id); err != nil {
			return err
		}
		if c.JSON {
			return a.JSON([]act.Done{{Item: id}})
		}
		fmt.Fprintln(a.Out, said(id.Short()))
		return nil
	})
}

// all acts on every item that fits the filter, and fits.
func (c *holdArgs) all(ctx context.Context, a *app, what, to string, fits func(ask.ItemRow) bool, do func(*engine.Engine, layout.ItemID) error) error {
	return a.looking(ctx, func(e *engine.Engine) error {
		f := c.filter()
		rows, err := e.Ask.Items(f, ask.Page{})
		if err != nil {
			return err
		}
		a.tellMissing(f.Asked)
		var seen []act.SeenStep
		for _, r := range rows {
			if fits(r) {
				seen = append(seen, act.SeenStep{StepRef: ledger.StepRef{Item: r.Item}})
			}
		}
		b := bulkArgs{placeArgs: c.placeArgs, sureArgs: c.sureArgs, JSON: c.JSON, none: noneText(rows, map[string]string{"hold": "held already", "release": "not held", "retire": "not finished, or held"}[what])}
		return b.bulk(ctx, a, e, seen, what, to, func(s act.SeenStep) (state.Transition, error) {
			return state.Transition{}, do(e, s.Item)
		})
	})
}

// noneText says why nothing is done with any of the items that a filter found.
func noneText(found []ask.ItemRow, why string) string {
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("nothing is changed: %s, %s", screen.CountVerb(len(found), "item fits", "items fit"), why)
}

// retireCmd takes records of finished items out of the tip.
type retireCmd struct{ holdArgs }

func (c *retireCmd) Run(ctx context.Context, a *app) error {
	do := func(e *engine.Engine, id layout.ItemID) error { return act.Retire(ctx, e.Act, id, c.Message) }
	if c.Item == "" {
		return c.all(ctx, a, "retire", "retired", func(r ask.ItemRow) bool { return r.Status == state.Completed && !r.Held }, do)
	}
	one := func(e *engine.Engine, id layout.ItemID) error {
		if err := e.Index.Load(ctx); err != nil { // its parts are looked at
			return err
		}
		return do(e, id)
	}
	return c.one(ctx, a, one, func(item string) string {
		return item + " retired; bring its records back with: bagpipe recall " + item
	})
}

// recallCmd brings the records of retired items back.
type recallCmd struct {
	Item    string `arg:"" help:"Identifier, the beginning of one, or label."`
	Message string `short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

func (c *recallCmd) Run(ctx context.Context, a *app) error {
	args := holdArgs{Item: c.Item, Message: c.Message, JSON: c.JSON}
	return args.one(ctx, a, func(e *engine.Engine, id layout.ItemID) error { return act.Recall(ctx, e.Act, id, c.Message) },
		func(item string) string { return item + " recalled" })
}

// noteCmd adds a note, to one item or many.
type noteCmd struct{ holdArgs }

// Validate is called by kong.
func (c *noteCmd) Validate() error {
	if strings.TrimSpace(c.Message) == "" {
		return errors.New("expected -m TEXT: the note")
	}
	return c.holdArgs.Validate()
}

func (c *noteCmd) Run(ctx context.Context, a *app) error {
	do := func(e *engine.Engine, id layout.ItemID) error { return act.Note(ctx, e.Act, id, c.Message) }
	if c.Item == "" {
		return c.all(ctx, a, "note on", "noted", func(ask.ItemRow) bool { return true }, do)
	}
	return c.one(ctx, a, do, func(item string) string { return item + " noted" })
}

type itemCmd struct {
	Set itemSetCmd `cmd:"" help:"Change an item's lane, label, collection, identifiers or metadata."`
}

// itemSetCmd describes an item, or many, anew. Names of filters are taken: what is set is
// named by --to-….
type itemSetCmd struct {
	holdArgs
	Label        string            `placeholder:"TEXT" help:"The item's label."`
	ToLane       string            `placeholder:"NAME" help:"The lane it is in from now on."`
	ToCollection string            `placeholder:"NAME" help:"The collection it is in from now on."`
	Identifier   map[string]string `placeholder:"KIND=VALUE" mapsep:"none" help:"An identifier of the item, as in barcode=36105; KIND= removes it."`
	Metadata     map[string]string `placeholder:"KEY=VALUE" mapsep:"none" help:"A key of its metadata, as tags.place for a key below another; a value that is JSON is taken as such; KEY= removes it."`
}

// Validate is called by kong.
func (c *itemSetCmd) Validate() error {
	if c.Label == "" && c.ToLane == "" && c.ToCollection == "" && len(c.Identifier)+len(c.Metadata) == 0 {
		return errors.New("expected what is to be set: --label, --to-lane, --to-collection, --identifier or --metadata (--lane and --collection choose items)")
	}
	return c.holdArgs.Validate()
}

func (c *itemSetCmd) Run(ctx context.Context, a *app) error {
	d := act.Description{Label: c.Label, Lane: c.ToLane, Collection: c.ToCollection, Identifiers: c.Identifier, Metadata: screen.Metadata(c.Metadata, nil)}
	do := func(e *engine.Engine, id layout.ItemID) error { return act.Describe(ctx, e.Act, id, d, c.Message) }
	if c.Item == "" {
		return c.all(ctx, a, "set", "set", func(ask.ItemRow) bool { return true }, do)
	}
	return c.one(ctx, a, do, func(item string) string { return item + " set" })
}

type cancelCmd struct {
	Item    string `arg:"" optional:"" help:"Identifier, the beginning of one, or label; without it: every item that fits the filter."`
	Of      string `arg:"" optional:"" name:"step" help:"Only this step: STEP or WORKFLOW/STEP."`
	Message string `short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
	itemFilter
	sureArgs
	JSON bool `name:"json" help:"Print JSON."`
}

// Validate is called by kong.
func (c *cancelCmd) Validate() error {
	h := holdArgs{Item: c.Item, itemFilter: c.itemFilter, sureArgs: c.sureArgs}
	return h.Validate()
}

func (c *cancelCmd) Run(ctx context.Context, a *app) error {
	if c.Item == "" {
		return c.all(ctx, a)
	}
	var ref ledger.StepRef
	if c.Of != "" {
		workflow, step, err := splitStep(c.Of)
		if err != nil {
			return err
		}
		ref.Workflow, ref.Step = workflow, step
	}
	return a.onItem(ctx, c.Item, func(e *engine.Engine, id layout.ItemID) error {
		ref.Item = id
		done, err := e.Act.Cancel(ctx, ref, c.Message)
		if err != nil {
			return err
		}
		rows := []act.Done{}
		for _, tr := range done {
			rows = append(rows, act.Done{Item: id, Workflow: tr.Workflow, Step: tr.Step, From: tr.From})
			if !c.JSON {
				fmt.Fprintf(a.Out, "%s %s/%s: %s\n", id.Short(), tr.Workflow, tr.Step, cancelled(tr))
			}
		}
		if c.JSON {
			return a.JSON(rows)
		}
		return nil
	})
}

// cancelled words what became of a step: one that runs is ended by its engine.
func cancelled(tr state.Transition) string {
	if tr.From == state.InProgress {
		return fmt.Sprintf("%s; its engine ends it, as %s", tr.From, state.Failed)
	}
	return moved(tr.From, state.Failed)
}

// all cancels on every item that fits and is not done.
func (c *cancelCmd) all(ctx context.Context, a *app) error {
	return a.looking(ctx, func(e *engine.Engine) error {
		f := c.filter()
		rows, err := e.Ask.Items(f, ask.Page{})
		if err != nil {
			return err
		}
		a.tellMissing(f.Asked)
		var seen []act.SeenStep
		for _, r := range rows {
			if r.Status == state.InProgress {
				seen = append(seen, act.SeenStep{StepRef: ledger.StepRef{Item: r.Item}})
			}
		}
		b := bulkArgs{placeArgs: c.placeArgs, sureArgs: c.sureArgs, JSON: c.JSON, none: noneText(rows, "not in progress")}
		return b.bulk(ctx, a, e, seen, "cancel", "cancelled", func(s act.SeenStep) (state.Transition, error) {
			_, err := e.Act.Cancel(ctx, s.StepRef, c.Message)
			return state.Transition{}, err
		})
	})
}
