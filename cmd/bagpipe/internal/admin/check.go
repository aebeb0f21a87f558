package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/delivery"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/steps"
)

// Check looks at all settings at once, for those who edit them in a clone, and for the hook
// that a push is asked by.
type Check struct {
	Dir  string `arg:"" optional:"" help:"A workspace, or a clone of one; default: the current folder."`
	JSON bool   `name:"json" help:"Print JSON."`
	Push bool   `hidden:"" help:"Check a push to the workspace DIR, as Git tells of it to a pre-receive hook."`
}

// checked is what a check of a folder found.
type checked struct {
	Files    int       `json:"files"`
	Mistakes []mistake `json:"mistakes"`
	Warnings []mistake `json:"warnings"` // what is allowed, and hardly meant
}

type mistake struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Error  string `json:"error"`
}

// Run prints the mistakes; exit code 1 when there is one.
func (c *Check) Run(ctx context.Context, on *screen.Screen, around screen.Around) error {
	if c.Dir == "" {
		c.Dir = string(around)
	}
	if c.Push {
		return c.pushed(ctx, on)
	}
	paths, mistakes, err := settings.CheckFolder(ctx, c.Dir, steps.Builtins(), time.Now())
	if err != nil {
		return err
	}
	doubts, err := settings.Doubts(ctx, c.Dir)
	if err != nil {
		return err
	}
	unmarked, err := delivery.Unmarked(c.Dir)
	if err != nil {
		return err
	}
	doubts = append(doubts, slices.DeleteFunc(unmarked, func(u error) bool { // where the target is refused, its mark helps nobody
		return slices.ContainsFunc(mistakes, func(m error) bool { return samePlace(m, u) })
	})...)
	if c.JSON {
		err = on.JSON(checked{len(paths), worded(mistakes), worded(doubts)})
	} else {
		printMistakes(on, mistakes)
		for _, d := range doubts {
			on.Talk("warning: %v", d)
		}
		if len(mistakes) == 0 {
			_, err = fmt.Fprintf(on.Out, "%s: sound\n", screen.Count(len(paths), "file"))
		}
	}
	if err == nil && len(mistakes) > 0 {
		return screen.ExitError
	}
	return err
}

// samePlace reports whether two mistakes are of one line.
func samePlace(m, o error) bool {
	var a, b *layout.FileError
	return errors.As(m, &a) && errors.As(o, &b) && a.File == b.File && a.Line == b.Line && a.Line > 0
}

func printMistakes(on *screen.Screen, mistakes []error) {
	for _, m := range mistakes {
		fmt.Fprintln(on.Out, m)
	}
}

func worded(mistakes []error) []mistake {
	all := []mistake{}
	for _, m := range mistakes {
		var at *layout.FileError
		if errors.As(m, &at) {
			all = append(all, mistake{at.File, at.Line, at.Column, at.Text})
		}
	}
	return all
}

// pushed reads OLD NEW REF, a line for each branch that a push moves. What it prints, the
// one who pushes sees.
func (c *Check) pushed(ctx context.Context, on *screen.Screen) error {
	const branch, none = "refs/heads/main", "0000000000000000000000000000000000000000"
	if err := engine.CheckOwner(c.Dir); err != nil {
		on.Talk("bagpipe: the push is refused: %s; push as that account, such as over ssh", err)
		return screen.ExitError
	}
	bad := false
	lines := bufio.NewScanner(on.In)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 || fields[2] != branch || fields[1] == none {
			continue
		}
		before := fields[0]
		if before == none {
			before = ""
		}
		mistakes, doubts, err := settings.CheckPushed(ctx, c.Dir, before, fields[1], steps.Builtins(), time.Now())
		if err != nil {
			return err
		}
		printMistakes(on, mistakes)
		for _, d := range doubts {
			on.Talk("warning: %v", d)
		}
		bad = bad || len(mistakes) > 0
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if bad {
		on.Talk("bagpipe: the push is refused: its settings are not sound; bagpipe check, in the clone, tells so before")
		return screen.ExitError
	}
	return nil
}
