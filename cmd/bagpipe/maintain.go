package main

import (
	"fmt"

	"bagpipe/engine"
)

type maintainCmd struct {
	Compact bool `help:"Pack everything anew with git repack; takes long, and makes the repository smallest."`
	JSON    bool `name:"json" help:"Print JSON."`
}

// Run prints what was done.
func (c *maintainCmd) Run(a *app) error {
	return a.with(func(e *engine.Engine) error {
		r, err := e.Maintain(a.ctx, c.Compact)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.json(r)
		}
		if r.Busy {
			fmt.Fprintln(a.out, "another process maintains this workspace; nothing was done")
			return nil
		}
		fmt.Fprintf(a.out, "%d packs joined; packs: %d before, %d after; bytes: %d before, %d after\n",
			r.Joined, r.PacksBefore, r.PacksAfter, r.BytesBefore, r.BytesAfter)
		return nil
	})
}
