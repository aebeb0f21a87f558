package main

import (
	"cmp"
	"fmt"
	"strings"

	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/inbox"
	"bagpipe/engine/state"
)

type statusCmd struct {
	itemFilter
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *statusCmd) Run(a *app) error {
	return a.looking(func(e *engine.Engine) error {
		f := c.filter()
		s, err := e.Ask.Status(a.ctx, f)
		if err != nil {
			return err
		}
		a.tellMissing(f.Asked)
		for i := range s.Inbox {
			row := &s.Inbox[i]
			row.Reason = withRemedies(row.Reason, row.Remedies...)
		}
		if c.JSON {
			return a.json(s)
		}
		return printStatus(a, s)
	})
}

func printStatus(a *app, s ask.Status) error {
	if s.Paused != "" {
		fmt.Fprintf(a.out, "%s\n\n", s.Paused)
	}
	fmt.Fprintf(a.out, "%s, %d held, %s, %s\n", count(s.Items, "item"), s.Held, countVerb(len(s.Rejected), "rejected drop", "rejected drops"), count(len(s.Engines), "engine")+" running")
	for _, g := range s.Grids {
		if err := printGrid(a, g); err != nil {
			return err
		}
	}
	printList(a, "Steps", controlLines(s.Steps))
	printFailed(a, failureLines(s.Failures))
	printList(a, "Children failed, of", linesOf(s.Parents, parentLine))
	printList(a, "Tried again later", linesOf(s.Later, laterLine))
	printList(a, "Waiting for a person", linesOf(s.People, personLine))
	printList(a, "Held", linesOf(s.Holds, holdLine))
	printList(a, "Not taken in", s.Pauses)
	printList(a, "In the inbox", linesOf(s.Inbox, ask.InboxRow.String))
	printList(a, "Rejected (kept in rejected/; what is mended can be moved back into the inbox)", linesOf(s.Rejected, rejectedLine))
	printList(a, "In progress", linesOf(s.Running, runningLine))
	printList(a, "Not claimed", s.Cold)
	printList(a, "Running", s.Engines)
	return nil
}

// printGrid prints how many items stand where in a workflow.
func printGrid(a *app, g ask.Grid) error {
	head := count(g.Items, "item")
	if g.Runs > g.Items {
		head += fmt.Sprintf(", %d runs", g.Runs)
	}
	fmt.Fprintf(a.out, "\n%s: %s\n", g.Workflow, head)
	t := newTable("step", "waiting", "in-progress", "completed", "skipped", "failed", "")
	for _, r := range g.Steps {
		n := func(s state.Status) any {
			if r.Counts[s] == 0 {
				return figure(".")
			}
			return r.Counts[s]
		}
		t.row(r.Step, n(state.Waiting), n(state.InProgress), n(state.Completed), n(state.Skipped), n(state.Failed), waitingNote(r))
	}
	return t.print(a.out)
}

func linesOf[T any](all []T, line func(T) string) []string {
	lines := make([]string, 0, len(all))
	for _, one := range all {
		lines = append(lines, line(one))
	}
	return lines
}

func parentLine(p ask.ItemRow) string {
	return fmt.Sprintf("%s  %s/%s: %d of %d; bagpipe items --parent %s --status failed", p.Item.Short(), p.Collection, p.Label, p.ChildrenFailed, p.Children, p.Item.Short())
}

func laterLine(l ask.TriedLater) string {
	return fmt.Sprintf("%s: %s, from %s on: %s", l.Step, count(l.Items, "item"), when(l.Next), l.Reason)
}

func personLine(p ask.ItemRow) string {
	if !strings.HasPrefix(p.Why, "waits for a person") { // its date is none
		return fmt.Sprintf("%s  %s/%s: %s %s; let it go on with: bagpipe step complete %s %s", p.Item.Short(), p.Collection, p.Label, p.Step, p.Why, p.Item.Short(), p.Step)
	}
	return fmt.Sprintf("%s  %s/%s: %s since %s; agree with: bagpipe step complete %s %s", p.Item.Short(), p.Collection, p.Label, p.Step, when(p.Since), p.Item.Short(), p.Step)
}

func holdLine(h ask.ItemRow) string {
	return fmt.Sprintf("%s  %s/%s: %s", h.Item.Short(), h.Collection, h.Label, h.HeldBy)
}

func rejectedLine(r inbox.Rejection) string {
	return strings.TrimSuffix(r.Drop+": "+r.Reason, ": ")
}

// runningLine says who is at a step, and how far; of one whose engine is gone, what to do.
func runningLine(r ask.RunningStep) string {
	gone := ""
	if r.Gone {
		gone = ", which is gone; resume it with: bagpipe run"
	}
	return strings.TrimSuffix(fmt.Sprintf("%s  %s/%s: %s/%s since %s by %s%s: %s", r.Item.Short(), r.Collection, r.Label, r.Workflow, r.Step, when(r.Since), r.Runner, gone, r.Progress), ": ")
}

// controlLines says how steps stand over all items, and what to do about it.
func controlLines(steps []ask.StepControl) (lines []string) {
	for _, c := range steps {
		line := fmt.Sprintf("%s: %s by %s since %s: %s", c.Step, c.Status, c.By, when(c.At), c.Text)
		switch {
		case c.Status == state.StepStopped:
			line = fmt.Sprintf("%s: stopped the run at %s: %s", c.Step, when(c.At), c.Text)
		case c.Trial != "":
			line += "; item " + c.Trial.Short() + " is being tried"
		case !c.Until.IsZero():
			line += "; one item is tried from " + when(c.Until)
		}
		if c.Waiting > 0 {
			line += "; " + countVerb(c.Waiting, "item waits", "items wait")
		}
		if c.Status == state.StepDisabled {
			line += "; let it go on with: bagpipe step enable " + c.Step
		}
		lines = append(lines, line)
	}
	return lines
}

func waitingNote(r ask.GridRow) string {
	switch {
	case r.Manual > 0:
		return fmt.Sprintf("%d for a person", r.Manual)
	case r.Ready > 0:
		return fmt.Sprintf("%d ready", r.Ready)
	}
	return ""
}

func failureLines(failures []ask.Failure) (lines []string) {
	for _, f := range failures {
		where := string(f.Step)
		if where == "" {
			where = cmp.Or(f.Workflow, "record")
		}
		lines = append(lines, fmt.Sprintf("%s  %s/%s: %s (%s): %s", f.Item.Short(), f.Collection, f.Label, where, f.Kind, f.Message))
	}
	return lines
}

// printFailed prints what failed; where it is much, mostly one cause has many items.
func printFailed(a *app, lines []string) {
	heading := "Failed"
	if len(lines) > mostLines {
		heading += " (bagpipe failures groups them by their cause)"
	}
	printList(a, heading, lines)
}

// mostLines is how many lines of a list are printed.
const mostLines = 50

// printList prints at most some lines under a heading, and how many more.
func printList(a *app, heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(a.out, "\n%s:\n", heading)
	for i, l := range lines {
		if i == mostLines {
			fmt.Fprintf(a.out, "  … and %d more (--json lists all)\n", len(lines)-mostLines)
			return
		}
		fmt.Fprintf(a.out, "  %s\n", l)
	}
}

func count[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
