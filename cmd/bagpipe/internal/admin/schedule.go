package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/schedule"
	"bagpipe/engine/timetable"
	"bagpipe/layout"
)

// Schedule shows schedules and acts on them.
type Schedule struct {
	List    scheduleList    `cmd:"" default:"withargs" help:"List the schedules: how they stand, when they are due."`
	Show    scheduleShow    `cmd:"" help:"Show a schedule with its last firings."`
	Next    scheduleNext    `cmd:"" help:"Say when a schedule is due from now on."`
	Log     scheduleLog     `cmd:"" help:"Print the log of a firing."`
	Start   scheduleStart   `cmd:"" help:"Let a schedule be fired that was stopped."`
	Stop    scheduleStop    `cmd:"" help:"Keep a schedule from being fired; a firing at work ends by itself, or at once."`
	Restart scheduleRestart `cmd:"" help:"Start a schedule anew, with its file as it is now."`
	Check   scheduleCheck   `cmd:"" help:"Check schedules in the workspace: their files, and the names in them."`
	Fire    scheduleFire    `cmd:"" help:"Fire a schedule now, and wait for its end."`
}

type scheduleList struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists the schedules.
func (c *scheduleList) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		rows, err := e.Schedule.Rows()
		if err != nil {
			return err
		}
		if c.JSON {
			if rows == nil {
				rows = []schedule.Row{}
			}
			return on.JSON(rows)
		}
		if len(rows) == 0 {
			on.Talk("no schedules; they stand in %s/NAME.yaml", layout.SchedulesDir)
			return nil
		}
		t := screen.NewTable("schedule", "trigger", "status", "next", "last", "outcome")
		for _, r := range rows {
			last, outcome := "", ""
			if r.Last != nil {
				last, outcome = screen.When(r.Last.Due), r.Last.Outcome
			}
			t.Row(r.Name, r.Trigger, standing(r), when(r.Next), last, outcome)
		}
		return t.Print(on.Out)
	})
}

func standing(r schedule.Row) string {
	if !r.Running.IsZero() {
		return "running"
	}
	return r.Status
}

func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return screen.When(t)
}

type scheduleShow struct {
	Name string `arg:"" help:"The schedule's name."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run shows one.
func (c *scheduleShow) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		r, err := e.Schedule.Row(c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return on.JSON(r)
		}
		fmt.Fprintf(on.Out, "schedule  %s\ntrigger   %s\n", r.Name, r.Trigger)
		if r.Zone != "" {
			fmt.Fprintf(on.Out, "zone      %s\n", r.Zone)
		}
		fmt.Fprintf(on.Out, "status    %s\n", standing(r))
		if r.Trouble != "" {
			fmt.Fprintf(on.Out, "trouble   %s\n", screen.Local(r.Trouble))
		}
		if !r.Next.IsZero() {
			fmt.Fprintf(on.Out, "next      %s\n", screen.When(r.Next))
		}
		if len(r.Firings) == 0 {
			return nil
		}
		fmt.Fprintln(on.Out)
		t := screen.NewTable("due", "outcome", "took", "engine", "message")
		for _, f := range r.Firings {
			took, outcome := "", f.Outcome
			if outcome == "" {
				outcome = "running"
			}
			if !f.Ended.IsZero() && !f.Begun.IsZero() {
				took = f.Ended.Sub(f.Begun).Round(time.Millisecond).String()
			}
			t.Row(screen.When(f.Due), outcome, screen.Figure(took), string(f.Engine), f.Message)
		}
		return t.Print(on.Out)
	})
}

type scheduleNext struct {
	Name  string `arg:"" help:"The schedule's name."`
	Count int    `short:"n" default:"5" placeholder:"N" help:"How many times; 5."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// Run says when one is due.
func (c *scheduleNext) Run(ctx context.Context, on *screen.Screen, open Open) error {
	if c.Count < 1 || c.Count > 1000 {
		return screen.WrongUse("--count: expected 1 to 1000")
	}
	return open.plain(ctx, func(e *engine.Engine) error {
		times, err := e.Schedule.Next(c.Name, c.Count)
		if err != nil {
			return err
		}
		if c.JSON {
			return on.JSON(append([]time.Time{}, times...))
		}
		for _, t := range times {
			fmt.Fprintln(on.Out, screen.When(t))
		}
		if len(times) == 0 {
			on.Talk("it is never due again")
		}
		return nil
	})
}

type scheduleLog struct {
	Name string `arg:"" help:"The schedule's name."`
}

// Run prints the log of the last firing that said something.
func (c *scheduleLog) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		r, err := e.Schedule.Row(c.Name)
		if err != nil {
			return err
		}
		for _, f := range r.Firings {
			if f.Log == "" {
				continue
			}
			data, err := os.ReadFile(filepath.Join(e.Root(), f.Log))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			on.Talk("due %s, in %s", screen.When(f.Due), f.Log)
			_, err = on.Out.Write(data)
			return err
		}
		on.Talk("no firing of it said anything")
		return nil
	})
}

type scheduleStart struct {
	Name string `arg:"" help:"The schedule's name."`
}

// Run starts one.
func (c *scheduleStart) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return set(ctx, on, open, c.Name, schedule.Order{Status: schedule.Started})
}

type scheduleStop struct {
	Name string `arg:"" help:"The schedule's name."`
	Now  bool   `name:"now" help:"End a firing that runs, too."`
}

// Run stops one.
func (c *scheduleStop) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return set(ctx, on, open, c.Name, schedule.Order{Status: schedule.Stopped, Now: c.Now})
}

type scheduleRestart struct {
	Name string `arg:"" help:"The schedule's name."`
	Now  bool   `name:"now" help:"End a firing that runs, too."`
}

// Run starts one anew.
func (c *scheduleRestart) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return set(ctx, on, open, c.Name, schedule.Order{Status: schedule.Started, Anew: true, Now: c.Now})
}

func set(ctx context.Context, on *screen.Screen, open Open, name string, o schedule.Order) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		changed, err := e.Schedule.Set(ctx, e.Ledger.ByPerson(), name, o)
		if err == nil && !changed {
			on.Talk("schedule %s is %s already", name, o.Status)
			return nil
		}
		return told(err, on, "%s: %s", name, o.Status)
	})
}

type scheduleCheck struct {
	Names []string `arg:"" optional:"" name:"name" help:"Only these: names, or files such as schedules/weekly.yaml."`
}

// Run checks the schedules' files, and those in force.
func (c *scheduleCheck) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		for i, name := range c.Names {
			if base, is := strings.CutSuffix(filepath.Base(name), ".yaml"); is && filepath.Base(filepath.Dir(name)) == layout.SchedulesDir {
				c.Names[i] = base
			}
		}
		rows, err := e.Schedule.Check(c.Names)
		if err != nil {
			return err
		}
		bad := false
		for _, r := range rows {
			if r.File != nil {
				fmt.Fprintln(on.Out, r.File)
				bad = true
			}
			for _, text := range r.Wrong {
				fmt.Fprintf(on.Out, "%s: %s\n", r.Name, text)
				bad = true
			}
			if r.File == nil && len(r.Wrong) == 0 {
				fmt.Fprintf(on.Out, "%s: sound\n", r.Name)
			}
		}
		if bad {
			return screen.ExitError
		}
		return nil
	})
}

// Shutdown ends what is at work on a workspace.
type Shutdown struct{}

// Run stops all schedules, and has the engines end.
func (c *Shutdown) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		stopped, engines, err := e.Schedule.Shutdown(ctx)
		if err != nil {
			return err
		}
		on.Talk("%s stopped; %s with the last firing", screen.CountVerb(stopped, "schedule was", "schedules were"), screen.CountVerb(engines, "engine ends", "engines end"))
		return nil
	})
}

type scheduleFire struct {
	Name string `arg:"" help:"The schedule's name."`
}

// Run fires one, and ends with exit code 4 when that failed.
func (c *scheduleFire) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		said, bad, err := e.Schedule.Fire(ctx, e.Ledger.ByPerson(), c.Name, workOnQueue(e))
		if err != nil {
			return err
		}
		fmt.Fprintln(on.Out, said)
		if bad {
			return screen.ExitSomeFailed
		}
		return nil
	})
}

// workOnQueue does what is ready in a queue by a run of its own.
func workOnQueue(e *engine.Engine) schedule.Deed {
	return func(ctx context.Context, d timetable.Do) (said string, failed bool, err error) {
		sum, err := e.Run(ctx, engine.RunOptions{Queue: d.Queue, Parallel: cmp.Or(d.Parallel, runtime.GOMAXPROCS(0))})
		n := 0
		for _, of := range sum.Steps {
			n += of
		}
		return fmt.Sprintf("%s, %d failed", layout.Count(n, "step"), len(sum.Failed)), len(sum.Failed) > 0, err
	}
}
