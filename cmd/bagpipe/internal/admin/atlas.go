package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/atlas"
	"bagpipe/engine/fault"
	"bagpipe/engine/fixity"
	"bagpipe/engine/roots"
	"bagpipe/engine/search"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps/target"
)

// STAC keeps a static catalog of all items.
type STAC struct {
	Dir        string        `arg:"" writes:"" help:"The folder; it is made, or brought up to date."`
	Collection []layout.Name `placeholder:"NAME" help:"Only this collection; again: these."`
	Href       string        `placeholder:"URL" help:"Where files are had from, as URL/ITEM/PATH; default: their place on this disk."`
	Rebuild    bool          `help:"Make all anew, also where .bagpipe-stac.json is not there or damaged."`
	JSON       bool          `name:"json" help:"Print JSON."`
}

// Validate is called by kong.
func (c *STAC) Validate() error {
	if c.Href == "" {
		return nil
	}
	if err := target.CheckBase(c.Href); err != nil {
		return fmt.Errorf("--href: %w", err)
	}
	return nil
}

// Run prints what was written.
func (c *STAC) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		now := e.Settings.Current()
		for _, name := range c.Collection {
			if !e.Settings.IsCollection(now.Settings, string(name)) {
				return fault.New(fault.NotFound, fmt.Sprintf("no collection %q", name))
			}
		}
		if err := Outside(e, c.Dir); err != nil {
			return err
		}
		done, err := atlas.STAC(ctx, e.Ledger, e.Folder, c.Dir, atlas.Options{Collections: c.Collection, Href: c.Href, Rebuild: c.Rebuild})
		if err != nil {
			return err
		}
		for _, p := range done.Problems {
			on.Talk("warning: %s", p)
		}
		if c.JSON {
			err = on.JSON(done)
		} else {
			_, err = fmt.Fprintf(on.Out, "%s: %s; %s written, %d removed\n", c.Dir, screen.Count(done.Items, "item"), screen.Count(done.Written, "file"), done.Removed)
		}
		if err == nil && len(done.Problems) > 0 {
			return screen.ExitSomeFailed
		}
		return err
	})
}

// Map draws where items lie.
type Map struct {
	question
	Output string `short:"o" required:"" placeholder:"FILE" writes:"" help:"The SVG file to write; -: standard output."`
}

// Validate is called by kong.
func (c *Map) Validate() error {
	_, err := c.query()
	return err
}

// Run says what was drawn.
func (c *Map) Run(ctx context.Context, on *screen.Screen, open Open) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	return open.plain(ctx, func(e *engine.Engine) error {
		if q, err = c.known(ctx, e, q); err != nil {
			return err
		}
		if c.Output != "-" {
			if err := Outside(e, c.Output); err != nil {
				return err
			}
			if info, err := os.Stat(c.Output); err == nil && info.IsDir() {
				return fault.New(fault.Refused, fmt.Sprintf("write %s: it is a folder; expected the name of a file, as %s", c.Output, filepath.Join(c.Output, "map.svg")))
			}
		}
		box := q.BBox
		asked := map[layout.ItemID]bool{}
		every := q.Empty()
		if !every {
			e.Search.Building = func() { on.Talk("building the search index…") }
			if err := e.Search.Find(ctx, q, 0, func(h search.Hit) bool { asked[h.Item] = true; return true }); err != nil {
				return err
			}
		}
		var svg bytes.Buffer
		drawn, err := atlas.Map(ctx, e.Ledger, &svg, box, func(id layout.ItemID) bool { return every || asked[id] })
		if err != nil {
			return err
		}
		if c.Output == "-" {
			_, err = on.Out.Write(svg.Bytes())
		} else {
			err = writeOver(ctx, c.Output, svg.Bytes())
		}
		if err == nil {
			on.Talk("%s drawn, %d without a place", screen.Count(drawn.Items, "item"), drawn.Without)
		}
		return err
	})
}

// writeOver makes data the content of a file; a link leads to it. What is there and is no regular file, as a pipe or a device, is
// written into.
func writeOver(ctx context.Context, path string, data []byte) error {
	is, err := os.Stat(path)
	if out, wrong := os.Stdout.Stat(); err == nil && wrong == nil && os.SameFile(is, out) { // as /dev/stdout is
		_, err = os.Stdout.Write(data)
		return err
	}
	if err != nil || is.Mode().IsRegular() {
		if at, err := os.Lstat(path); err == nil && at.Mode().Type() == fs.ModeSymlink {
			if path, err = filepath.Abs(path); err != nil {
				return err
			}
			path = roots.Resolve(path)
		}
		return disk.WriteFile(path, data, 0o666)
	}
	written := make(chan error, 1)
	go func() { // a pipe waits for a reader
		out, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, err = out.Write(data)
			err = errors.Join(err, out.Close())
		}
		written <- err
	}()
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Outside refuses to write among what the workspace keeps, below a catalog's root, and in the inbox, where it would become
// an item.
func Outside(e *engine.Engine, to string) error {
	return fixity.Outside(to, e.Ledger, e.Settings.Current(), e.Ledger.Path(layout.InboxDir))
}
