package main

import (
	"context"
	"fmt"
	"path/filepath"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/layout"
)

type initCmd struct {
	Dir string `arg:"" writes:"" help:"The folder to make; it may be there and empty."`
}

func (c *initCmd) Run(ctx context.Context, a *app) error {
	o, err := a.options()
	if err != nil {
		return err
	}
	if c.Dir != "" && a.Dir != "" && !filepath.IsAbs(c.Dir) {
		c.Dir = filepath.Join(a.Dir, c.Dir)
	}
	if err := engine.Init(ctx, c.Dir, o); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "Made workspace %s\n", c.Dir)
	a.Talk("Drop content into %s, then: bagpipe -C %s run", shellWord(c.Dir+"/inbox/default"), shellWord(c.Dir))
	return nil
}

type maintainCmd struct {
	Compact bool `help:"Pack everything anew with git repack; takes long, and makes the repository smallest."`
	JSON    bool `name:"json" help:"Print JSON."`
}

// Run prints what was done.
func (c *maintainCmd) Run(ctx context.Context, a *app) error {
	return a.with(ctx, func(e *engine.Engine) error {
		r, err := e.Maintain(ctx, c.Compact)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.JSON(r)
		}
		if r.Busy {
			fmt.Fprintln(a.Out, "another process maintains this workspace; nothing was done")
			return nil
		}
		fmt.Fprintf(a.Out, "%s joined; packs: %d before, %d after; %s before, %s after\n",
			screen.Count(r.Joined, "pack"), r.PacksBefore, r.PacksAfter, layout.FormatSize(uint64(r.BytesBefore)), layout.FormatSize(uint64(r.BytesAfter)))
		return nil
	})
}
