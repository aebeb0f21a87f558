package admin

import (
	"context"
	"fmt"
	"path/filepath"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/settings"
	"bagpipe/steps/formats"
)

// Formats says by which signatures the robot identify knows formats, and changes them.
type Formats struct {
	Show formatsShow `cmd:"" default:"withargs" help:"Print which signatures are in force."`
	Use  formatsUse  `cmd:"" help:"Put newer signatures in force."`
}

type formatsShow struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the signatures in force.
func (c *formatsShow) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		file, err := e.Settings.Signatures()
		if err != nil {
			return err
		}
		r, err := formats.Load(file)
		if err != nil {
			return err
		}
		if c.JSON {
			return on.JSON(map[string]string{"file": file, "signatures": r.Name})
		}
		if file == "" {
			file = "those of this program"
		}
		fmt.Fprintf(on.Out, "%s (%s)\n", r.Name, file)
		return nil
	})
}

type formatsUse struct {
	File     string `arg:"" optional:"" type:"path" help:"A signature file of siegfried, as its tool roy makes them."`
	Embedded bool   `help:"Go back to the signatures of this program."`
}

// Run puts the file's signatures in force.
func (c *formatsUse) Run(ctx context.Context, on *screen.Screen, open Open) error {
	if (c.File == "") != c.Embedded {
		return screen.WrongUse("name a signature file, or give --embedded")
	}
	return open.plain(ctx, func(e *engine.Engine) error {
		file := c.File
		if file != "" {
			var err error
			if file, err = filepath.Abs(file); err != nil {
				return err
			}
		}
		name, err := settings.UseSignatures(ctx, e.Settings, file)
		if err == nil {
			on.Talk("formats are identified by %s", name)
		}
		return err
	})
}
