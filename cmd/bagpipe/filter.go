package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/act"
	"bagpipe/engine/ask"
	"bagpipe/engine/state"
	"bagpipe/layout"

	"golang.org/x/term"
)

// placeArgs narrow what is listed, or acted on.
type placeArgs struct {
	Collection string        `placeholder:"NAME" help:"Only this collection."`
	Lane       string        `placeholder:"NAME" help:"Only this lane."`
	Batch      string        `placeholder:"NAME" help:"Only this batch."`
	Reached    string        `placeholder:"MILESTONE" help:"Only items that reached this milestone."`
	Failure    string        `aliases:"match" placeholder:"TEXT" help:"Only where the message of a failed step holds this."`
	Older      time.Duration `placeholder:"TIME" help:"Only items that have not moved for so long, as in 36h."`
	Where      string        `placeholder:"CONDITION" help:"Only items of which this holds, as in 'metadata.year >= 1990'."`
}

// Validate is called by kong.
func (c *placeArgs) Validate() error {
	return checkWhere(c.Where)
}

func (c *placeArgs) filter() ask.Filter {
	f := ask.Filter{Collection: layout.Name(c.Collection), Lane: layout.Name(c.Lane), Batch: c.Batch, Milestone: layout.Name(c.Reached),
		Message: c.Failure, Older: c.Older, Where: where(c.Where)}
	if c.Where != "" {
		f.Asked = &ask.Asked{}
	}
	return f
}

// tellMissing says which paths no item has that were asked for: an empty answer, or an
// order that is none, would not tell that they are misspelt.
func (a *app) tellMissing(asked *ask.Asked) {
	for _, path := range asked.Missing() {
		switch path {
		case "workflow", "step", "status":
			a.Talk("warning: no item that was looked at has %s; --%[1]s chooses by it", path)
		default:
			a.Talk("warning: no item that was looked at has %s", path)
		}
	}
}

// given tells whether anything is narrowed.
func (c *placeArgs) given() bool { return *c != placeArgs{} }

// itemFilter narrows items, also by where they stand.
type itemFilter struct {
	placeArgs
	Workflow string `placeholder:"NAME" help:"Only items with this workflow."`
	Step     string `placeholder:"NAME" help:"Only items with this step; with --status, in that status."`
	Status   string `placeholder:"STATUS" enum:",waiting,in-progress,completed,skipped,failed,inactive,scheduled" default:"" help:"waiting, in-progress, completed, skipped or failed; inactive or scheduled, of a workflow."`
}

func (c *itemFilter) filter() ask.Filter {
	f := c.placeArgs.filter()
	f.Workflow, f.Step, f.Status = c.Workflow, layout.Name(c.Step), state.Status(c.Status)
	return f
}

func (c *itemFilter) given() bool { return *c != itemFilter{} }

// askAbove is how many items are acted on without being asked for.
const askAbove = 100

// sureArgs are what acts on many items take.
type sureArgs struct {
	DryRun bool `help:"Print the changes, and make none."`
	Yes    bool `short:"y" help:"Do not ask, however many items there are."`

	single bool // a person decides about one item: more are asked about on a terminal
}

// sure asks before many items are changed.
func (c *sureArgs) sure(a *app, n int, what, noun string) error {
	f, ok := a.In.(*os.File)
	asks := ok && term.IsTerminal(int(f.Fd()))
	most := askAbove
	if asks && c.single {
		most = 1
	}
	if n <= most || c.Yes || c.DryRun {
		return nil
	}
	if !asks {
		return fmt.Errorf("%s %s: say --yes, or look first with --dry-run", what, screen.Count(n, noun))
	}
	fmt.Fprintf(a.Err, "%s %s? [y/N] ", what, screen.Count(n, noun))
	answer, err := bufio.NewReader(a.In).ReadString('\n')
	if err != nil || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y") {
		return errors.New("nothing was changed")
	}
	return nil
}

// bulkArgs are what acts on steps or items take instead of ITEM.
type bulkArgs struct {
	placeArgs
	sureArgs
	JSON bool `name:"json" help:"Print JSON."`

	none string // what is said where there is nothing to act on; "": that nothing fits
}

// bulk does something to all that fit, and prints what became of each.
func (c *bulkArgs) bulk(ctx context.Context, a *app, e *engine.Engine, seen []act.SeenStep, what, to string, do func(act.SeenStep) (state.Transition, error)) error {
	if len(seen) == 0 {
		a.Talk("%s", cmp.Or(c.none, "nothing fits"))
	}
	if err := c.sure(a, len(seen), what, "item"); err != nil {
		return err
	}
	var rows []act.Done
	var err error
	if c.DryRun {
		for _, s := range seen {
			rows = append(rows, act.Done{Item: s.Item, Workflow: s.Workflow, Step: s.Step, From: s.Status})
		}
	} else if rows, err = e.Act.Bulk(ctx, seen, func(_ context.Context, s act.SeenStep) (state.Transition, error) { return do(s) }); err != nil {
		return err
	}
	refused := 0
	for _, r := range rows {
		if r.Refused != "" {
			refused++
		}
	}
	if c.JSON {
		if rows == nil {
			rows = []act.Done{}
		}
		if err := a.JSON(rows); err != nil {
			return err
		}
	} else {
		c.print(a, rows, to, refused)
	}
	if refused > 0 {
		return screen.ExitError
	}
	return nil
}

func (c *bulkArgs) print(a *app, rows []act.Done, to string, refused int) {
	would, verb := "", "changed"
	if c.DryRun {
		would, verb = "would: ", "would be changed"
	}
	for _, r := range rows {
		if r.Refused != "" {
			a.Talk("bagpipe: %s", r.Refused)
			continue
		}
		line := r.Item.Short()
		if r.Step != "" {
			line += fmt.Sprintf(" %s/%s: %s", r.Workflow, r.Step, moved(r.From, state.Status(to)))
		} else {
			line += " " + to
		}
		fmt.Fprintf(a.Out, "%s%s\n", would, line)
	}
	if len(rows) > 0 {
		a.Talk("%s %s", screen.Count(len(rows)-refused, "item"), verb)
	}
}
