package admin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/sync"
	"bagpipe/layout"
)

// Restore makes a workspace again from a backup of its history.
type Restore struct {
	History string `arg:"" help:"A repository, a bundle, or an address that git clone takes."`
	Dir     string `arg:"" writes:"" help:"The folder to make; it may be there, empty or with the folders of a backup."`
	Site    string `placeholder:"NAME" help:"The site that the workspace takes the place of, after the commits that the site pushed to HISTORY, the remote origin from now on, were fetched; without it the workspace does nothing with the items of any site."`
	Alone   bool   `help:"With --site: no other copy has more of the site's history, and HISTORY is no remote."`
}

// Validate is called by kong.
func (c *Restore) Validate() error {
	if c.Alone && c.Site == "" {
		return errors.New("--alone is for --site")
	}
	return nil
}

// Program is the path of this program, for the hook of the workspace.
type Program string

// Run says what is left to do.
func (c *Restore) Run(ctx context.Context, on *screen.Screen, program Program, options Options) error {
	name := layout.Name(c.Site)
	if c.Site != "" {
		if _, err := layout.ParseName(c.Site); err != nil {
			return screen.WrongUse("--site: " + err.Error())
		}
	}
	err := engine.Restore(ctx, c.History, c.Dir, name, engine.Options{Program: string(program)})
	cutShort := errors.Is(err, engine.ErrIsWorkspace) && name != "" && engine.BecomesSite(c.Dir, name)
	if err != nil && !cutShort {
		return err
	}
	fmt.Fprintf(on.Out, "Restored the history of %s\n", c.Dir)
	if name != "" {
		if err := c.takePlace(ctx, name, options); err != nil {
			return err
		}
		on.Talk("It is site %s", name)
	}
	on.Talk("Copy items, inbox, intake, rejected and the store there from the same backup, unless they are there; then: bagpipe -C %s fixity run", c.Dir)
	return nil
}

// takePlace makes the workspace the site whose history it has.
func (c *Restore) takePlace(ctx context.Context, name layout.Name, options Options) error {
	root, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	remotes, err := gitstore.Remotes(ctx, root)
	if err == nil && !c.Alone && len(remotes) == 0 {
		err = gitstore.AddRemote(ctx, root, "origin", c.History)
	}
	if err != nil {
		return err
	}
	o, err := options()
	if err != nil {
		return err
	}
	e, err := engine.Open(ctx, root, o)
	if err != nil {
		return err
	}
	_, err = sync.New(e.Ledger, e.Guard).Restored(ctx, name, c.Alone)
	if err := errors.Join(err, e.Close()); err != nil {
		return err
	}
	return engine.SiteIsRestored(root)
}
