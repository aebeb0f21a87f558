package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/guard"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/engine/sync"
	"bagpipe/layout"
)

// Conflict lists and settles what two histories said differently of an item.
type Conflict struct {
	List   conflictList   `cmd:"" default:"withargs" help:"List the items that two histories describe differently."`
	Show   conflictShow   `cmd:"" help:"Show the values of an item that are in conflict."`
	Choose conflictChoose `cmd:"" help:"Choose one of the values; with the last one the item goes on."`
}

type conflictList struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints a line for each key.
func (c *conflictList) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		rows, err := e.Ask.Items(ask.Filter{}, ask.Page{})
		if err != nil {
			return err
		}
		all := []sync.Conflict{}
		for _, r := range rows {
			if !r.Held {
				continue
			}
			of, err := sync.New(e.Ledger, e.Guard).Conflicts(r.Item)
			if err != nil {
				return err
			}
			all = append(all, of...)
		}
		if c.JSON {
			return on.JSON(all)
		}
		if len(all) == 0 {
			on.Talk("no conflicts")
		}
		for _, k := range all {
			fmt.Fprintf(on.Out, "%s  %s/%s: %s has %s\n", k.Item.Short(), k.Collection, k.Label, k.Key, screen.Count(len(k.Values), "value"))
		}
		return nil
	})
}

type conflictShow struct {
	Item string `arg:"" help:"Identifier, the beginning of one, or label."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run prints the values, numbered; the one in force has a mark.
func (c *conflictShow) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		id, err := e.Ask.Resolve(ctx, c.Item)
		if err != nil {
			return err
		}
		all, err := sync.New(e.Ledger, e.Guard).Conflicts(id)
		if err != nil {
			return err
		}
		if c.JSON {
			return on.JSON(append([]sync.Conflict{}, all...))
		}
		for _, k := range all {
			fmt.Fprintf(on.Out, "%s\n", k.Key)
			for i, v := range k.Values {
				mark := ""
				if string(v) == string(k.InForce) {
					mark = "  (in force)"
				}
				fmt.Fprintf(on.Out, "  %d  %s%s\n", i+1, v, mark)
			}
		}
		if len(all) == 0 {
			on.Talk("item %s has no conflict", id.Short())
		}
		return nil
	})
}

type conflictChoose struct {
	Item    string `arg:"" help:"Identifier, the beginning of one, or label."`
	Key     string `arg:"" help:"The key, as conflict show prints it."`
	Value   int    `arg:"" help:"The number of the value there."`
	Message string `short:"m" placeholder:"TEXT" help:"Why; stands in the history."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// Run settles one key.
func (c *conflictChoose) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		id, err := e.Ask.Resolve(ctx, c.Item)
		if err != nil {
			return err
		}
		s := sync.New(e.Ledger, e.Guard)
		left, err := s.Choose(ctx, id, c.Key, c.Value, c.Message)
		if err != nil {
			return err
		}
		released := false
		if left == 0 {
			if released, err = s.HeldByJoins(id); err != nil {
				return err
			}
		}
		if released {
			err = e.Act.Release(ctx, id, "what two histories said is settled")
		}
		switch {
		case c.JSON:
			return errors.Join(err, on.JSON(struct {
				Item     layout.ItemID `json:"item"`
				Key      string        `json:"key"`
				Left     int           `json:"left"`
				Released bool          `json:"released"`
			}{id, c.Key, left, released}))
		case released:
			fmt.Fprintf(on.Out, "%s: %s is settled; the item is released\n", id.Short(), c.Key)
		default:
			fmt.Fprintf(on.Out, "%s: %s is settled; %s left\n", id.Short(), c.Key, screen.Count(left, "conflict"))
		}
		return err
	})
}

// Divergences lists what two sites made of the same.
type Divergences struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints a line for each step.
func (c *Divergences) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		all, err := sync.Divergences(ctx, e.Ledger)
		if err != nil {
			return err
		}
		if c.JSON {
			return on.JSON(all)
		}
		if len(all) == 0 {
			on.Talk("no step was done with other outputs at another site")
		}
		for _, d := range all {
			fmt.Fprintln(on.Out, DivergenceText(d))
		}
		return nil
	})
}

// DivergenceText says which step two attempts did otherwise, and what rests on the other one.
func DivergenceText(d sync.Diverged) string {
	text := fmt.Sprintf("%s  %s/%s: %s/%s was done with other outputs: %s; the last one named counts", d.Item.Short(), d.Collection, d.Label, d.Workflow, d.Step, strings.Join(d.By, ", "))
	for i, s := range d.Stale {
		if i == 0 {
			text += "; stale: "
		} else {
			text += ", "
		}
		text += string(s)
	}
	return text
}

// MergeDriver joins records where git merges a clone.
type MergeDriver struct {
	Install driverInstall `cmd:"" help:"Have git join the records of a clone, as the first command there does."`
	Join    driverRun     `cmd:"" name:"run" hidden:"" help:"Join three versions of a file, as git calls it."`
}

type driverInstall struct {
	Dir string `arg:"" optional:"" writes:"" help:"The clone; default: the current folder."`
}

// Run registers the driver.
func (c *driverInstall) Run(ctx context.Context, around screen.Around, options Options) error {
	if c.Dir == "" {
		c.Dir = string(around)
	}
	o, err := options()
	if err != nil {
		return err
	}
	return gitstore.InstallDriver(ctx, c.Dir, o.Program, true)
}

type driverRun struct {
	Base   string `arg:"" help:"The version that both began from."`
	Ours   string `arg:"" help:"Ours, where the result goes."`
	Theirs string `arg:"" help:"Theirs."`
	Path   string `arg:"" help:"The file's path in the repository."`
}

// Run leaves to git's own merge what is no record.
func (c *driverRun) Run(ctx context.Context, on *screen.Screen) error {
	var of [3][]byte
	for i, name := range []string{c.Base, c.Ours, c.Theirs} {
		var err error
		if of[i], err = os.ReadFile(name); err != nil {
			return err
		}
	}
	united, ok, err := guard.JoinFile(filepath.ToSlash(c.Path), of[0], of[1], of[2], plansHere(ctx))
	switch {
	case err != nil:
		return err
	case !ok:
		on.Talk("bagpipe: %s is no record; merge it by hand", c.Path)
		return screen.ExitError
	}
	return os.WriteFile(c.Ours, united, 0o666)
}

// plansHere reads pinned definitions of the clone, by the commits that are merged.
func plansHere(ctx context.Context) state.Plans {
	known := map[string]*state.Definition{}
	return func(digest string) *state.Definition {
		if d, ok := known[digest]; ok {
			return d
		}
		known[digest] = nil
		if hex, err := layout.ParseDigest(digest); err == nil && hex != "" {
			p := layout.PinnedPath(digest)
			data, err := os.ReadFile(filepath.FromSlash(p))
			for _, rev := range []string{"HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD"} {
				if err != nil {
					data, err = gitstore.ShowFile(ctx, rev, p)
				}
			}
			if err == nil && ledger.DigestOf(data) == digest {
				if d, err := state.ParseDefinition(p, data, nil); err == nil {
					known[digest] = d
				}
			}
		}
		return known[digest]
	}
}
