package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/cmd/bagpipe/internal/service"
	"bagpipe/cmd/bagpipe/internal/tracing"
	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/delivery"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/metrics"
	"bagpipe/engine/remote"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

type runCmd struct {
	Watch    bool `help:"Stay, and take in drops as they come; ends with SIGTERM or Ctrl-C."`
	Parallel int  `short:"j" placeholder:"N" help:"Steps at once; default: the number of cores."`

	Item        []string `placeholder:"ITEM" help:"Work on this item alone, not on the inbox; may be given several times."`
	Step        string   `placeholder:"STEP" help:"With --item: do this step alone; STEP or WORKFLOW/STEP."`
	On          string   `placeholder:"WORKER" help:"With --item: the worker that is to do the steps that are placed on workers; the engine that serves workers gives them to it."`
	Queue       string   `placeholder:"NAME" help:"Work on this queue alone, not on the inbox: a named one, WORKFLOW, WORKFLOW/STEP or /STEP."`
	Batch       string   `placeholder:"NAME" help:"Make the inbox's drops one batch, closed when all of them have been taken in."`
	Metrics     string   `placeholder:"ADDR" help:"With --watch: answer /metrics, for Prometheus, and /healthz on this address, as in :9464; without a host on this machine alone."`
	RetryFailed bool     `help:"First let every failed step be tried again."`
	FailFast    bool     `help:"Start nothing new once a step has failed for good; steps at work are finished."`

	Traces string `placeholder:"URL" help:"Send traces of the items' steps to a collector (OpenTelemetry, OTLP over HTTP), as in http://localhost:4318/v1/traces; of programs built with -tags otel."`

	JSON  bool `name:"json" help:"Print the summary as JSON."`
	Quiet bool `short:"q" help:"Print the summary, and news for a person, alone; nothing where nothing was done."`
}

// Validate is called by kong.
func (c *runCmd) Validate() error {
	if c.Parallel < 0 || c.Parallel > 1024 {
		return errors.New("--parallel: expected 1 to 1024, or 0 for the number of cores")
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
	case c.Metrics != "" && !c.Watch:
		return errors.New("--metrics is for --watch")
	case c.On != "" && len(c.Item) == 0:
		return errors.New("--on is for --item")
	case len(c.Item) > 0 && c.Watch:
		return errors.New("--item and --watch exclude each other")
	}
	return nil
}

func (c *runCmd) Run(ctx context.Context, a *app) error {
	a.stays(resumes)
	parallel := parallelOr(c.Parallel)
	for told := false; ; told = true {
		err := c.run(ctx, a, parallel)
		if !c.Watch || !fullDisk(err) && !(fullDisk(a.unwritable) && errors.Is(err, gitstore.ErrReadOnly)) {
			return err
		}
		if !told {
			a.Talk("the disk is full, and nothing can be begun; it is gone on with when there is room")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.drain:
			return nil
		case <-time.After(roomEvery):
		}
	}
}

// resumes is what a run, and an engine that serves, answer the first signal with.
const resumes = "stopping: steps at work are finished first; a second signal stops them, and they are resumed at the next start"

// stays prepares a process that works for long, and answers the first signal with a text.
func (a *app) stays(stopping string) {
	// The goroutine that commits must not queue behind the workers when a sync
	// returns: with a place more for each core steps took two thirds of the time.
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
	}
	a.drains = stopping
	signal.Ignore(syscall.SIGPIPE) // a run outlives who reads what it prints
}

// parallelOr is how many steps run at once.
func parallelOr(asked int) int {
	if asked > 0 {
		return asked
	}
	return runtime.NumCPU()
}

// roomEvery is how often a service that was started on a full disk looks for room.
const roomEvery = 2 * time.Second

func fullDisk(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func (c *runCmd) run(ctx context.Context, a *app, parallel int) error {
	watched, err := c.listen()
	if err != nil {
		return err
	}
	if watched != nil {
		defer watched.Close()
	}
	return a.with(ctx, func(e *engine.Engine) error {
		return c.on(ctx, a, e, engine.RunOptions{Parallel: parallel, Metrics: watched})
	})
}

// on runs on an engine that was opened; o says how many steps at once, and who counts.
func (c *runCmd) on(ctx context.Context, a *app, e *engine.Engine, o engine.RunOptions) error {
	var items []layout.ItemID
	for _, ref := range c.Item {
		id, err := e.Ask.Resolve(ctx, ref)
		if err != nil {
			return err
		}
		if err := onWorker(ctx, e, id, c.On); err != nil {
			return err
		}
		items = append(items, id)
	}
	c.tellStart(a, e, o.Parallel)
	p := newProgress(a, c.Quiet, c.Watch, e.Ask.Running)
	o.Watch, o.Drain, o.Report = c.Watch, a.drain, p.report
	if c.Traces != "" {
		traces, err := tracing.Open(ctx, c.Traces, version)
		if err != nil {
			return err
		}
		defer func() { _ = traces.Close() }() // a collector that does not answer fails no run
		o.Report = func(r engine.Report) { p.report(r); traces.Report(r) }
	}
	if c.FailFast {
		ended := make(chan struct{})
		defer close(ended)
		failFast(&o, ended)
	}
	o.Items, o.Step, o.Queue, o.Batch, o.RetryFailed = items, c.Step, c.Queue, layout.Name(c.Batch), c.RetryFailed
	if c.Watch {
		ended := make(chan struct{})
		defer close(ended)
		if err := c.tellManager(a, &o, ended); err != nil {
			return err
		}
	}
	s, err := e.Run(ctx, o)
	p.close()
	if err != nil {
		return err
	}
	if a.Log != nil {
		a.Log.Info("ended", "admitted", s.Admitted, "rejected", s.Rejected, "completed", s.Steps[state.Completed],
			"skipped", s.Steps[state.Skipped], "failed", s.Steps[state.Failed], "waiting", s.Waiting)
	}
	exit := screen.ExitDone
	switch {
	case ctx.Err() != nil, a.interrupted() && !c.Watch:
		exit = screen.ExitInterrupted
	case len(s.Stopped) > 0:
		exit = screen.ExitThreshold
	case !c.Watch && (len(s.Failed) > 0 || s.Rejected > 0 || len(s.NotDone) > 0 || s.Barred > 0 || len(s.Mishaps) > 0 || len(s.Cold) > 0 || s.Undelivered > 0 ||
		len(s.Unsound) > 0 || len(s.Held) > 0 || slices.ContainsFunc(s.Deliveries, delivery.Asking.Wrong) ||
		slices.ContainsFunc(s.Tried, func(l ask.TriedLater) bool { return l.Store || l.Overdue })):
		exit = screen.ExitSomeFailed
	}
	if c.Quiet && !c.JSON && exit == screen.ExitDone && idle(s) {
		return nil
	}
	if err := c.print(a, s); err != nil || exit == screen.ExitDone {
		return err
	}
	return exit
}

// failFast lets a run start nothing new from the first failure on that its item does not go
// on after.
func failFast(o *engine.RunOptions, ended <-chan struct{}) {
	drain, asked, tell := make(chan struct{}), o.Drain, o.Report
	failed := make(chan struct{}, 1)
	o.Drain = drain
	o.Report = func(r engine.Report) {
		tell(r)
		if r.Ended != nil && r.Ended.Status == state.Failed && !r.Ended.Tolerated {
			select {
			case failed <- struct{}{}:
			default:
			}
		}
	}
	go func() {
		defer close(drain)
		select {
		case <-asked:
		case <-failed:
		case <-ended:
		}
	}()
}

// watch is run --watch on an engine that was opened, beside the pages.
func (a *app) watch(ctx context.Context, e *engine.Engine, parallel int, counts *metrics.Metrics, workers *remote.Remote) error {
	c := runCmd{Watch: true}
	return c.on(ctx, a, e, engine.RunOptions{Parallel: parallel, Counts: counts, Workers: workers})
}

// tellStart says what begins to run, where that is kept: by a service, and in a log.
func (c *runCmd) tellStart(a *app, e *engine.Engine, parallel int) {
	in := e.Settings.Current()
	tip := "?"
	if v, err := e.Ledger.Store.Tip(); err == nil {
		tip = v.Commit().String()
	}
	if a.Log != nil {
		a.Log.Info("started", "version", version, "workspace", e.Ledger.Root, "commit", tip, "workflows", len(in.Workflows), "rules", len(in.Rules),
			"queues", len(in.Queues), "store", in.Settings.StoreDir(e.Ledger.Root), "parallel", parallel, "watch", c.Watch)
	}
	if beside, err := e.Ask.Beside(); err == nil && !c.Quiet { // what is in the way of telling keeps no run
		for _, other := range beside {
			a.Say(screen.Local("also at work here: " + other))
		}
	}
	if c.Watch && !c.Quiet {
		a.Say(fmt.Sprintf("bagpipe %s: %s at commit %.12s, %s, %s, store %s, %s at once", version, e.Ledger.Root, tip,
			screen.Count(len(in.Workflows), "workflow"), screen.Count(len(in.Rules), "rule"), in.Settings.StoreDir(e.Ledger.Root), screen.Count(parallel, "step")))
	}
}

// idle tells that a run took nothing in and did nothing, and that nothing is in the way of
// what lies in the inbox.
func idle(s engine.Summary) bool {
	return s.Admitted == 0 && s.Stuck == 0 && s.Steps[state.Completed]+s.Steps[state.Skipped]+s.Steps[state.Failed] == 0
}

// tellManager tells a manager of services that this one is ready, then that it is alive, and
// that it stops, until the run has ended.
func (c *runCmd) tellManager(a *app, o *engine.RunOptions, ended <-chan struct{}) error {
	tell := func(state string) {
		if err := service.Tell(state); err != nil {
			a.Talk("warning: the service's manager was not told: %v", err)
		}
	}
	if every := service.Beat(); every > 0 {
		o.Beat, o.BeatEvery = func() { tell(service.Alive) }, every
	}
	go func() {
		select {
		case <-a.drain:
			tell(service.Stopping)
		case <-ended:
		}
	}()
	return service.Tell(service.Ready)
}

// listen opens the address of the metrics; nil: there is none.
func (c *runCmd) listen() (net.Listener, error) {
	if c.Metrics == "" {
		return nil, nil
	}
	host, port, err := net.SplitHostPort(c.Metrics)
	if err != nil {
		return nil, screen.WrongUse(fmt.Sprintf("--metrics: expected an address as :9464 or 10.0.0.1:9464, not %q", c.Metrics))
	}
	return service.Listen("--metrics", net.JoinHostPort(cmp.Or(host, "localhost"), port))
}

func (c *runCmd) print(a *app, s engine.Summary) error {
	growing := linesOf(s.Growing, adviceLine)
	for i := range s.NotDone {
		n := &s.NotDone[i]
		n.Why = withRemedies(n.Why, n.Remedy)
	}
	if c.JSON {
		return a.JSON(struct {
			engine.Summary
			Growing []string `json:"growing"`
		}{s, growing})
	}
	fmt.Fprintf(a.Out, "%s taken in, %d rejected; steps: %d completed, %d skipped, %d failed",
		screen.Count(s.Admitted, "drop"), s.Rejected, s.Steps[state.Completed], s.Steps[state.Skipped], s.Steps[state.Failed])
	if s.Waiting > 0 {
		fmt.Fprintf(a.Out, "; %s for a person", screen.CountVerb(s.Waiting, "step waits", "steps wait"))
	}
	if s.Later > 0 {
		fmt.Fprintf(a.Out, "; %s for a later time", screen.CountVerb(s.Later, "step waits", "steps wait"))
	}
	if s.Workers > 0 {
		fmt.Fprintf(a.Out, "; %s for a remote worker (bagpipe serve lets them in)", screen.CountVerb(s.Workers, "step waits", "steps wait"))
	}
	if s.Before > 0 {
		fmt.Fprintf(a.Out, "; %s earlier (bagpipe status)", screen.CountVerb(s.Before, "step failed", "steps failed"))
	}
	fmt.Fprintln(a.Out)
	for _, c := range s.Stopped {
		fmt.Fprintf(a.Out, "Stopped by the threshold of %s: %s\n", c.Step, screen.Local(c.Text))
	}
	a.List("Steps out of the flow", controlLines(s.Off))
	a.List("Rejected", linesOf(s.Bad, func(d intake.Admitted) string {
		return fmt.Sprintf("%s/%s: %s (kept as %s)", d.Collection, d.Label, d.Rejected, d.KeptAs)
	}))
	a.List("Failed", failureLines(s.Failed), manyFailed)
	a.List("Tried again later", linesOf(s.Tried, laterLine))
	a.List("Not claimed", s.Cold)
	a.List("Drops and deliveries wait until these rules are put right, or removed", s.Unsound)
	listDeliveries(a, s.Deliveries)
	a.List("Held for what was pushed", linesOf(s.Held, screen.Local))
	a.List("Left in the inbox", growing)
	a.List("Passed over", s.Mishaps)
	var open []string
	for _, n := range s.NotDone {
		open = append(open, fmt.Sprintf("%s  %s: %s: %s", n.Item.Short(), n.Label, n.Step, n.Why))
	}
	a.List("Not done", open)
	return nil
}
