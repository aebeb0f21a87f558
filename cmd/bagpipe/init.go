package main

import (
	"fmt"
	"path/filepath"

	"bagpipe/engine"
)

type initCmd struct {
	Dir string `arg:"" help:"The folder to make; it may be there and empty."`
}

func (c *initCmd) Run(a *app) error {
	o, err := a.options()
	if err != nil {
		return err
	}
	if c.Dir != "" && a.cli.Dir != "" && !filepath.IsAbs(c.Dir) {
		c.Dir = filepath.Join(a.cli.Dir, c.Dir)
	}
	if err := engine.Init(a.ctx, c.Dir, o); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "Made workspace %s\n", c.Dir)
	a.talk("Drop content into %s/inbox/default, then: bagpipe -C %s run", c.Dir, c.Dir)
	return nil
}
