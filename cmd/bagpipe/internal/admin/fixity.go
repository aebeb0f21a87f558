package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/fixity"
	"bagpipe/layout"
)

// Open opens the workspace; who calls it closes the engine.
type Open func(context.Context) (*engine.Engine, error)

// plain opens the workspace, lets f work on it, and closes it.
func (o Open) plain(ctx context.Context, f func(*engine.Engine) error) error {
	e, err := o(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(e), e.Close())
}

// with opens the workspace with all items loaded, lets f work on it, and closes it.
func (o Open) with(ctx context.Context, f func(*engine.Engine) error) error {
	return o.plain(ctx, func(e *engine.Engine) error {
		if err := e.Index.Load(ctx); err != nil {
			return err
		}
		return f(e)
	})
}

// Fixity checks what is kept, and says when that was done.
type Fixity struct {
	Run    fixityRun    `cmd:"" help:"Check the copies of items against the history, and record the findings."`
	Status fixityStatus `cmd:"" help:"Say when the items were checked, and which are damaged."`
}

type fixityRun struct {
	Item      []string      `arg:"" optional:"" help:"Identifier, the beginning of one, or label; default: all items."`
	Sample    string        `placeholder:"PART" help:"Only this part of them, as in 5%, those checked longest ago first."`
	Older     time.Duration `placeholder:"TIME" help:"Only those that were not checked for so long, as in 1y."`
	Due       bool          `help:"Only the copies on targets that are due by the targets' fixity: settings, those verified longest ago first."`
	Mend      bool          `help:"Replace damaged copies on targets from a sound copy."`
	Workspace bool          `help:"Compare the files of the workspace and the store with the records, by names, and have git check the history; no payload is read and nothing recorded."`
	JSON      bool          `name:"json" help:"Print JSON, one object a line."`
	Quiet     bool          `short:"q" help:"Print damaged copies alone, and how many could not be read."`

	sample float64
}

// Validate is called by kong.
func (c *fixityRun) Validate() error {
	if c.Workspace && (len(c.Item) > 0 || c.Sample != "" || c.Older != 0 || c.Mend) {
		return errors.New("--workspace is for all of it: without ITEM, --sample, --older and --mend")
	}
	if c.Due && (len(c.Item) > 0 || c.Sample != "" || c.Older != 0 || c.Workspace) {
		return errors.New("--due is for all that is due: without ITEM, --sample, --older and --workspace")
	}
	if c.Sample == "" {
		return nil
	}
	part, err := layout.ParsePart(c.Sample)
	if err != nil {
		return fmt.Errorf("--sample: %w", err)
	}
	c.sample = part
	return nil
}

// Run prints each item, and ends with exit code 4 when one is damaged, or a copy could not be read.
func (c *fixityRun) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		if c.Workspace {
			return c.workspace(ctx, on, e)
		}
		which := fixity.Which{Mend: c.Mend, Sample: c.sample, Older: c.Older}
		for _, ref := range c.Item {
			id, err := e.Ask.Resolve(ctx, ref)
			if err != nil {
				return err
			}
			which.Items = append(which.Items, id)
		}
		checked, damaged := 0, 0
		unread := map[string]int{} // by the name of the copy
		told := func(r fixity.Result) {
			checked++
			if len(r.Failed()) > 0 {
				damaged++
			}
			for name, found := range r.Copies {
				if found.Outcome == layout.FixityDown {
					unread[name]++
				}
			}
			c.print(on, r)
		}
		run := func() (int, error) { return e.Fixity.Run(ctx, which, told) }
		if c.Due {
			run = func() (int, error) { return e.Fixity.Due(ctx, c.Mend, nil, told) }
		}
		passed, err := run()
		if err != nil {
			return err
		}
		if !c.JSON && (!c.Quiet || damaged > 0) {
			fmt.Fprintf(on.Out, "%s checked, %d damaged\n", screen.Count(checked, "item"), damaged)
		}
		if passed > 0 && !c.Quiet {
			on.Talk("%s worked on, and passed over", screen.CountVerb(passed, "item is being", "items are being"))
		}
		for _, name := range slices.Sorted(maps.Keys(unread)) {
			if !c.JSON {
				fmt.Fprintf(on.Out, "not read  %s: %s\n", name, screen.CountVerb(unread[name], "copy", "copies"))
			}
		}
		if damaged > 0 || len(unread) > 0 {
			return screen.ExitSomeFailed
		}
		return nil
	})
}

// workspace prints what does not fit together.
func (c *fixityRun) workspace(ctx context.Context, on *screen.Screen, e *engine.Engine) error {
	found := 0
	err := e.Fixity.Workspace(ctx, func(f fixity.Finding) {
		found++
		if c.JSON {
			if err := on.JSONLine(f); err != nil {
				on.Talk("bagpipe: %v", err)
			}
			return
		}
		fmt.Fprintf(on.Out, "%-13s  %s: %s\n", f.Kind, f.Path, screen.Local(f.Text))
	})
	if err == nil && !c.JSON && (!c.Quiet || found > 0) {
		fmt.Fprintf(on.Out, "%s compared with the records: %s\n", screen.Count(e.Index.Loaded().Len(), "item"), screen.Count(found, "finding"))
	}
	if err == nil && found > 0 {
		return screen.ExitSomeFailed
	}
	return err
}

func (c *fixityRun) print(on *screen.Screen, r fixity.Result) {
	failed := r.Failed()
	switch {
	case c.JSON:
		if err := on.JSONLine(r); err != nil {
			on.Talk("bagpipe: %v", err)
		}
	case len(failed) > 0:
		for _, name := range failed {
			fmt.Fprintf(on.Out, "damaged  %s  %s/%s: %s: %s\n", r.Item.Short(), r.Collection, r.Label, name, screen.Local(r.Copies[name].Message))
		}
	case r.Newer() != "":
		if !c.Quiet {
			on.Talk("newer    %s  %s/%s: %s", r.Item.Short(), r.Collection, r.Label, screen.Local(r.Newer()))
		}
	case !c.Quiet:
		var copies []string
		names := []string{fixity.Source, fixity.Content, fixity.Derived, fixity.Deposit}
		for _, name := range slices.Sorted(maps.Keys(r.Copies)) {
			if !slices.Contains(names[:4], name) {
				names = append(names, name)
			}
		}
		for _, name := range names {
			if found, there := r.Copies[name]; there {
				copies = append(copies, name+" "+found.Outcome)
				switch {
				case found.Message != "" && found.Outcome == layout.FixityPassed:
					copies[len(copies)-1] = name + " " + found.Message
				case found.Message != "" && found.Outcome == layout.FixityDown:
					copies[len(copies)-1] += " (" + screen.Local(found.Message) + ")"
				}
			}
		}
		if r.Elsewhere() {
			on.Talk("absent   %s  %s/%s: its bytes are not here; it came in at another site", r.Item.Short(), r.Collection, r.Label)
			return
		}
		on.Talk("sound    %s  %s/%s: %s", r.Item.Short(), r.Collection, r.Label, strings.Join(copies, ", "))
	}
	if !c.JSON && !c.Quiet {
		for _, line := range asideLines(r) {
			on.Talk("aside    %s", line)
		}
	}
}

// asideLines tell where bytes stand that mends set aside of an item's copies.
func asideLines(r fixity.Result) (lines []string) {
	for _, name := range r.Aside() {
		lines = append(lines, fmt.Sprintf("%s  %s/%s: %s: bytes that a mend set aside stand in %s", r.Item.Short(), r.Collection, r.Label, name, screen.Local(r.Copies[name].Aside)))
	}
	return lines
}

type fixityStatus struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints when what was checked; exit code 4 when the last check of an item failed.
func (c *fixityStatus) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		s, err := e.Fixity.Status()
		if err != nil {
			return err
		}
		if c.JSON {
			err = on.JSON(s)
		} else {
			printFixity(on, s)
			tellSweeps(on, e, s)
		}
		if err == nil && len(s.Failed) > 0 {
			return screen.ExitSomeFailed
		}
		return err
	})
}

// tellSweeps says where the schedules tell what they counted that check copies, and not items.
func tellSweeps(on *screen.Screen, e *engine.Engine, s fixity.Status) {
	for _, name := range slices.Sorted(maps.Keys(e.Settings.Current().Schedules)) {
		if of := e.Settings.Current().Schedules[name].Do.Fixity; s.Never > 0 && of != "" && of != fixity.OfItems {
			on.Talk("these are items, each with all its copies; what was found of the copies of %s: bagpipe schedule show %s", of, name)
		}
	}
}

func printFixity(on *screen.Screen, s fixity.Status) {
	fmt.Fprintf(on.Out, "%s, %d checked, %d never, %d damaged\n", screen.Count(s.Items, "item"), s.Checked, s.Never, len(s.Failed))
	if s.Checked > 0 {
		fmt.Fprintf(on.Out, "checked longest ago: %s; last: %s\n", screen.When(s.Oldest), screen.When(s.Newest))
	}
	var lines []string
	for _, r := range s.Failed {
		for _, name := range r.Failed() {
			lines = append(lines, fmt.Sprintf("%s  %s/%s: %s at %s: %s", r.Item.Short(), r.Collection, r.Label, name, screen.When(r.Copies[name].At), r.Copies[name].Message))
		}
	}
	on.List("Damaged", lines)
	lines = nil
	for _, r := range s.Aside {
		lines = append(lines, asideLines(r)...)
	}
	on.List("Set aside by mends, until fixity run --mend reads the copy and finds it sound", lines)
}
