package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/layout"
)

// Search finds items by what is written in them.
type Search struct {
	Text       string `arg:"" help:"A text, whatever the case of its letters."`
	Collection string `placeholder:"NAME" help:"Only this collection."`
	Limit      int    `placeholder:"N" default:"100" help:"At most N items; 0: all."`
	JSON       bool   `name:"json" help:"Print JSON, one object a line."`
}

// Validate is called by kong.
func (c *Search) Validate() error {
	switch {
	case strings.TrimSpace(c.Text) == "":
		return errors.New("expected a text to look for")
	case c.Limit < 0:
		return errors.New("--limit: expected a number from 0 up")
	}
	return nil
}

// Run prints each item as it is found.
func (c *Search) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		found, more := 0, false
		err := e.Ask.Search(ctx, ask.Filter{Collection: layout.Name(c.Collection)}, c.Text, func(h ask.Hit) bool {
			if more = c.Limit > 0 && found == c.Limit; more {
				return false
			}
			found++
			c.print(on, h)
			return true
		})
		switch {
		case err != nil:
			return err
		case found == 0:
			on.Talk("nothing has %q", c.Text)
		case more:
			on.Talk("… and more; --limit 0 finds all")
		}
		return nil
	})
}

func (c *Search) print(on *screen.Screen, h ask.Hit) {
	if c.JSON {
		if err := on.JSONLine(h); err != nil {
			on.Talk("bagpipe: %v", err)
		}
		return
	}
	fmt.Fprintf(on.Out, "%s  %s/%s", h.Item.Short(), h.Collection, h.Label)
	if len(h.Fields) > 0 {
		fmt.Fprintf(on.Out, "  (%s)", strings.Join(h.Fields, ", "))
	}
	fmt.Fprintln(on.Out)
	for _, f := range h.Files {
		fmt.Fprintf(on.Out, "    %s\n", f)
	}
	if h.More > 0 {
		fmt.Fprintf(on.Out, "    … and %s more\n", screen.Count(h.More, "file"))
	}
}
