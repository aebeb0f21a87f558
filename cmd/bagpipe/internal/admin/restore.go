package admin

import (
	"context"
	"fmt"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
)

// Restore makes a workspace again from a backup of its history.
type Restore struct {
	History string `arg:"" help:"A repository, a bundle, or an address that git clone takes."`
	Dir     string `arg:"" help:"The folder to make; it may be there, empty or with the folders of a backup."`
}

// Program is the path of this program, for the hook of the workspace.
type Program string

// Run says what is left to do.
func (c *Restore) Run(ctx context.Context, on *screen.Screen, program Program) error {
	if err := engine.Restore(ctx, c.History, c.Dir, engine.Options{Program: string(program)}); err != nil {
		return err
	}
	fmt.Fprintf(on.Out, "Restored the history of %s\n", c.Dir)
	on.Talk("Copy items, inbox, intake, rejected and the store there from the same backup, unless they are there; then: bagpipe -C %s fixity run", c.Dir)
	return nil
}
