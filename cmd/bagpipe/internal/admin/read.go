package admin

import (
	"context"
	"fmt"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
)

// Read calls a reader.
type Read struct {
	Name string `arg:"" help:"A reader of the settings."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run prints what was taken in.
func (c *Read) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		o, err := e.Reader.Read(ctx, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			err = on.JSON(o)
		} else {
			for _, got := range o.Taken {
				fmt.Fprintf(on.Out, "%s  %s/%s\n", got.Item, got.Collection, got.Label)
			}
			for _, why := range o.Failed {
				on.Talk("not taken in: %s", why)
			}
			if o.Ended != "" {
				on.Talk("reader %s: %s; its log is logs/readers/%s.log", o.Reader, o.Ended, o.Reader)
			}
		}
		if err == nil && o.Trouble() {
			return screen.ExitSomeFailed
		}
		return err
	})
}
