package admin

import (
	"context"
	"fmt"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/layout"
)

// Retrieve hands an item out.
type Retrieve struct {
	Item    string      `arg:"" help:"Identifier, the beginning of one, or label."`
	Version int         `placeholder:"N" help:"This version of it; default: the present one."`
	From    layout.Name `placeholder:"TARGET" help:"Have it from this target; default: from wherever a copy is sound."`
	To      string      `required:"" placeholder:"PATH" writes:"" help:"A folder or an archive (.zip, .tar, .tar.gz, .tar.zst) to make; it must not be there."`
	JSON    bool        `name:"json" help:"Print JSON."`
	Quiet   bool        `short:"q" help:"No progress."`
}

// Validate is called by kong.
func (c *Retrieve) Validate() error {
	if c.Version < 0 {
		return fmt.Errorf("--version: expected a number from 1 up, not %d", c.Version)
	}
	return nil
}

// Run prints what was handed out, and from where.
func (c *Retrieve) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		id, err := e.Ask.Resolve(ctx, c.Item)
		if err != nil {
			return err
		}
		m := screen.NewMeter(on, "retrieve", nil, c.Quiet || c.JSON)
		r, err := e.Fixity.Retrieve(ctx, id, c.Version, c.From, c.To, m.Report)
		m.Close()
		if err != nil {
			return err
		}
		if c.JSON {
			return on.JSON(r)
		}
		fmt.Fprintf(on.Out, "%s: version %d of %s, %s, %s, from %s; checked\n", r.To, r.Version, id.Short(), screen.Count(r.Files, "file"), screen.Count(r.Bytes, "byte"), r.From)
		return nil
	})
}
