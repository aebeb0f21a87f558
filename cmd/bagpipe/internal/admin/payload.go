package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/act"
	"bagpipe/engine/ask"
	"bagpipe/engine/fixity"
	"bagpipe/layout"
)

// Payload tells where items' bytes are, and moves them: no history holds them.
type Payload struct {
	Status payloadStatus `cmd:"" default:"withargs" help:"List the items whose bytes are not here."`
	Get    payloadGet    `cmd:"" help:"Bring the bytes of items here, from a folder, from HOST:FOLDER by rsync over ssh, or from their deposits."`
	Put    payloadPut    `cmd:"" help:"Take the bytes of items to a folder, or to HOST:FOLDER by rsync over ssh."`
}

// payloadItems are the items named, or all.
type payloadItems struct {
	Item []string `arg:"" optional:"" help:"Identifier, the beginning of one, or label; default: all items."`
	JSON bool     `name:"json" help:"Print JSON."`
}

func (p payloadItems) each(ctx context.Context, e *engine.Engine, do func(layout.ItemID) error) error {
	ids := []layout.ItemID{}
	for _, ref := range p.Item {
		id, err := e.Ask.Resolve(ctx, ref)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if len(p.Item) == 0 {
		rows, err := e.Ask.Items(ask.Filter{}, ask.Page{})
		if err != nil {
			return err
		}
		for _, r := range rows {
			ids = append(ids, r.Item)
		}
	}
	var errs []error
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := do(id); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

type payloadStatus struct{ payloadItems }

// Run prints a line for each item that lacks something.
func (c *payloadStatus) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		all := []fixity.Payload{}
		err := c.each(ctx, e, func(id layout.ItemID) error {
			p, err := fixity.PayloadOf(ctx, e.Fixity, id)
			if err == nil && len(p.Missing) > 0 {
				all = append(all, p)
			}
			return err
		})
		if c.JSON {
			return errors.Join(err, on.JSON(all))
		}
		for _, p := range all {
			here := ""
			if p.Twin {
				here = "; what is here is of another version of the number, made at this site"
			}
			fmt.Fprintf(on.Out, "%s  %s/%s: %s is not here, %s%s\n", p.Item.Short(), p.Collection, p.Label, strings.Join(p.Missing, ", "), screen.Count(p.Bytes, "byte"), here)
		}
		if err == nil && len(all) == 0 {
			on.Talk("the bytes of all items are here")
		}
		return err
	})
}

type payloadGet struct {
	payloadItems
	From string `required:"" placeholder:"PLACE" help:"The folder of a workspace or a backup, HOST:FOLDER, or deposit."`
}

// Run prints a line for each item whose bytes came.
func (c *payloadGet) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		return c.moved(ctx, on, e, "from", func(id layout.ItemID) (fixity.Moved, error) {
			m, err := fixity.PayloadGet(ctx, e.Fixity, id, c.From)
			if err != nil {
				return m, err
			}
			again, err := act.BytesCame(ctx, e.Act, id) // also where none came now: one that was killed may have brought them
			if len(again) > 0 {
				on.Talk("%s: done by the next run, which it kept waiting: %s", id.Short(), strings.Join(again, ", "))
			}
			return m, err
		})
	})
}

type payloadPut struct {
	payloadItems
	To string `required:"" placeholder:"PLACE" writes:"" help:"The folder of a workspace or a backup, or HOST:FOLDER."`
}

// Run prints a line for each item whose bytes went.
func (c *payloadPut) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		return c.moved(ctx, on, e, "to", func(id layout.ItemID) (fixity.Moved, error) { return fixity.PayloadPut(ctx, e.Fixity, id, c.To) })
	})
}

func (p payloadItems) moved(ctx context.Context, on *screen.Screen, e *engine.Engine, way string, move func(layout.ItemID) (fixity.Moved, error)) error {
	all := []fixity.Moved{}
	err := p.each(ctx, e, func(id layout.ItemID) error {
		m, err := move(id)
		if err != nil || len(m.Parts) == 0 {
			return err
		}
		if all = append(all, m); !p.JSON {
			fmt.Fprintf(on.Out, "%s: %s %s %s, %s\n", id.Short(), strings.Join(m.Parts, ", "), way, m.Place, screen.Count(m.Bytes, "byte"))
		}
		if len(m.Unverified) > 0 {
			on.Talk("%s: no digest is committed of %s", id.Short(), strings.Join(m.Unverified, ", "))
		}
		return nil
	})
	if p.JSON {
		err = errors.Join(err, on.JSON(all))
	}
	return err
}
