package admin

import (
	"context"
	"errors"
	"fmt"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/intake"
	"bagpipe/layout"
)

// Register makes an item before its content is there.
type Register struct {
	Workflow   string            `placeholder:"NAME" help:"The workflow; default: the collection's."`
	Collection layout.Name       `placeholder:"NAME" help:"The collection; default: default."`
	Label      string            `required:"" placeholder:"TEXT" help:"The item's label."`
	Lane       string            `placeholder:"NAME" help:"The lane (priority)."`
	Batch      layout.Name       `placeholder:"NAME" help:"The batch it belongs to."`
	Identifier map[string]string `placeholder:"KIND=VALUE" mapsep:"none" help:"An identifier of the item, as in barcode=36105; a drop that has it brings the content."`
	Metadata   map[string]string `placeholder:"KEY=VALUE" mapsep:"none" help:"A key of its metadata, as tags.place for a key below another; a value that is JSON is taken as such."`
	JSON       bool              `name:"json" help:"Print JSON."`
}

// Run prints the item.
func (c *Register) Run(ctx context.Context, on *screen.Screen, open Open) error {
	known := intake.Known{Identifiers: c.Identifier, Metadata: screen.Metadata(c.Metadata, "")}
	for kind, value := range c.Identifier {
		if kind == "" || value == "" {
			return errors.New("--identifier: expected KIND=VALUE")
		}
	}
	return open.with(ctx, func(e *engine.Engine) error {
		got, err := e.Intake.Register(ctx, intake.AddOptions{Workflow: c.Workflow, Collection: c.Collection, Label: c.Label, Lane: c.Lane, Batch: c.Batch}, known)
		if err != nil {
			return err
		}
		return tellTaken(on, got, c.JSON)
	})
}

// Attach brings an item the content that it was registered without.
type Attach struct {
	Item string `arg:"" help:"Identifier, the beginning of one, or label."`
	Path string `arg:"" help:"A file, folder or archive."`
	Move bool   `help:"Move it instead of copying it."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run prints the item.
func (c *Attach) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		id, err := e.Ask.Resolve(ctx, c.Item)
		if err != nil {
			return err
		}
		if err := e.Intake.Attachable(id); err != nil {
			return err
		}
		got, err := e.Intake.Add(ctx, c.Path, intake.AddOptions{VersionOf: id, Move: c.Move})
		if err == nil && got.Rejected != "" {
			err = fmt.Errorf("%s: %s (kept as %s)", got.Label, got.Rejected, got.KeptAs)
		}
		if err != nil {
			return err
		}
		return tellTaken(on, got, c.JSON)
	})
}

func tellTaken(on *screen.Screen, got intake.Admitted, asJSON bool) error {
	if asJSON {
		return on.JSON(got)
	}
	_, err := fmt.Fprintf(on.Out, "%s  %s/%s\n", got.Item, got.Collection, got.Label)
	return err
}
