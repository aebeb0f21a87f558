package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

type runCmd struct {
	Watch bool `help:"Stay, and take in what is dropped; ends with SIGTERM or Ctrl-C."`
	Jobs  int  `short:"j" placeholder:"N" help:"Steps at once; default: the number of cores."`

	Item        []string `placeholder:"ITEM" help:"Work on this item alone, not on the inbox; may be given several times."`
	Step        string   `placeholder:"STEP" help:"With --item: do this step alone; STEP or WORKFLOW/STEP."`
	Queue       string   `placeholder:"NAME" help:"Work on this queue alone, not on the inbox: a named one, WORKFLOW, WORKFLOW/STEP or /STEP."`
	Batch       string   `placeholder:"NAME" help:"What is taken in from the inbox is one batch, closed when the inbox has been taken in."`
	RetryFailed bool     `help:"First let every failed step be tried again."`

	JSON  bool `name:"json" help:"Print the summary as JSON."`
	Quiet bool `short:"q" help:"Print the summary, and what a person must know, alone."`
}

// Validate is called by kong.
func (c *runCmd) Validate() error {
	if c.Jobs < 0 || c.Jobs > 1024 {
		return errors.New("--jobs: expected 1 to 1024, or 0 for the number of cores")
	}
	if c.Step != "" {
		if _, _, err := splitStep(c.Step); err != nil {
			return fmt.Errorf("--step: %w", err)
		}
	}
	if c.Batch != "" {
		if _, err := layout.ParseName(c.Batch); err != nil {
			return fmt.Errorf("--batch: %w", err)
		}
	}
	switch {
	case c.Batch != "" && (c.Watch || len(c.Item) > 0 || c.Queue != ""):
		return errors.New("--batch is for one going over the inbox, without --watch, --item and --queue")
	case c.Queue != "" && len(c.Item) > 0:
		return errors.New("--queue and --item exclude each other")
	case c.Step != "" && len(c.Item) == 0:
		return errors.New("--step is for --item; bagpipe queue lists what waits for a step")
	case len(c.Item) > 0 && c.Watch:
		return errors.New("--item and --watch exclude each other")
	}
	return nil
}

func (c *runCmd) Run(a *app) error {
	// The goroutine that commits must not queue behind the workers when a sync
	// returns: with a place more for each core steps took two thirds of the time.
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
	}
	a.drains = true
	jobs := c.Jobs
	if jobs <= 0 {
		jobs = runtime.NumCPU()
	}
	return a.with(func(e *engine.Engine) error {
		var items []layout.ItemID
		for _, ref := range c.Item {
			id, err := e.Ask.Resolve(a.ctx, ref)
			if err != nil {
				return err
			}
			items = append(items, id)
		}
		p := newProgress(a, c.Quiet, c.Watch)
		s, err := e.Run(a.ctx, engine.RunOptions{Jobs: jobs, Watch: c.Watch, Drain: a.drain, Report: p.report,
			Items: items, Step: c.Step, Queue: c.Queue, Batch: layout.Name(c.Batch), RetryFailed: c.RetryFailed})
		p.close()
		if err != nil {
			return err
		}
		if err := c.print(a, s); err != nil {
			return err
		}
		switch {
		case a.ctx.Err() != nil, a.interrupted() && !c.Watch:
			return exit(exitInterrupted)
		case len(s.Stopped) > 0:
			return exit(exitThreshold)
		case !c.Watch && (len(s.Failed) > 0 || s.Rejected > 0 || len(s.NotDone) > 0 || s.Barred > 0 || len(s.Mishaps) > 0 || slices.ContainsFunc(s.Tried, func(l ask.TriedLater) bool { return l.Store })):
			return exit(exitSomeFailed)
		}
		return nil
	})
}

func (c *runCmd) print(a *app, s engine.Summary) error {
	growing := linesOf(s.Growing, adviceLine)
	for i := range s.NotDone {
		n := &s.NotDone[i]
		n.Why = withRemedies(n.Why, n.Remedy)
	}
	if c.JSON {
		return a.json(struct {
			engine.Summary
			Growing []string `json:"growing"`
		}{s, growing})
	}
	fmt.Fprintf(a.out, "%s taken in, %d rejected; steps: %d completed, %d skipped, %d failed",
		count(s.Admitted, "drop"), s.Rejected, s.Steps[state.Completed], s.Steps[state.Skipped], s.Steps[state.Failed])
	if s.Waiting > 0 {
		fmt.Fprintf(a.out, "; %s for a person", countVerb(s.Waiting, "step waits", "steps wait"))
	}
	if s.Later > 0 {
		fmt.Fprintf(a.out, "; %s for a later time", countVerb(s.Later, "step waits", "steps wait"))
	}
	if s.Before > 0 {
		fmt.Fprintf(a.out, "; %s earlier (bagpipe status)", countVerb(s.Before, "step failed", "steps failed"))
	}
	fmt.Fprintln(a.out)
	for _, c := range s.Stopped {
		fmt.Fprintf(a.out, "Stopped by the threshold of %s: %s\n", c.Step, c.Text)
	}
	printList(a, "Steps out of the flow", controlLines(s.Off))
	printFailed(a, failureLines(s.Failed))
	printList(a, "Tried again later", linesOf(s.Tried, laterLine))
	printList(a, "Left in the inbox", growing)
	printList(a, "Passed over", s.Mishaps)
	var open []string
	for _, n := range s.NotDone {
		open = append(open, fmt.Sprintf("%s  %s: %s: %s", n.Item.Short(), n.Label, n.Step, n.Why))
	}
	printList(a, "Not done", open)
	return nil
}

func countVerb(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
