package main

import (
	"errors"
	"fmt"
	"runtime"

	"bagpipe/engine"
	"bagpipe/engine/state"
)

type runCmd struct {
	Watch bool `help:"Stay, and take in what is dropped; ends with SIGTERM or Ctrl-C."`
	Jobs  int  `short:"j" placeholder:"N" help:"Steps at once; default: the number of cores."`
	JSON  bool `name:"json" help:"Print the summary as JSON."`
	Quiet bool `short:"q" help:"Print the summary alone."`
}

// Validate is called by kong.
func (c *runCmd) Validate() error {
	if c.Jobs < 0 || c.Jobs > 1024 {
		return errors.New("--jobs: expected 1 to 1024, or 0 for the number of cores")
	}
	return nil
}

func (c *runCmd) Run(a *app) error {
	a.drains = true
	jobs := c.Jobs
	if jobs <= 0 {
		jobs = runtime.NumCPU()
	}
	return a.with(func(e *engine.Engine) error {
		p := newProgress(a, c.Quiet, c.Watch)
		s, err := e.Run(a.ctx, engine.RunOptions{Jobs: jobs, Watch: c.Watch, Drain: a.drain, Report: p.report})
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
		case !c.Watch && (len(s.Failed) > 0 || s.Rejected > 0):
			return exit(exitSomeFailed)
		}
		return nil
	})
}

func (c *runCmd) print(a *app, s engine.Summary) error {
	if c.JSON {
		return a.json(s)
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
	printList(a, "Failed", failureLines(s.Failed))
	printList(a, "Left in the inbox", s.Growing)
	return nil
}

func countVerb(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
