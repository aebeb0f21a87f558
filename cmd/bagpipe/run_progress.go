package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
)

// progress shows how a run goes: on a terminal a line for each item that is done or failed,
// and a bar; a line for each step otherwise.
type progress struct {
	a     *app
	quiet bool
	watch bool
	bars  *mpb.Progress
	bar   *mpb.Bar
	total int64
	done  int64
	ended chan struct{} // closed at the end of the run
	at    atomic.Pointer[string]
}

// newProgress shows a run of which running tells what is at work.
func newProgress(a *app, quiet, watch bool, running func() []ask.RunningStep) *progress {
	p := &progress{a: a, quiet: quiet, watch: watch, ended: make(chan struct{})}
	f, ok := a.Err.(*os.File)
	if quiet || watch || !ok || !term.IsTerminal(int(f.Fd())) {
		return p
	}
	p.bars = mpb.New(mpb.WithOutput(f), mpb.WithWidth(20))
	p.bar = p.bars.New(0, mpb.BarStyle(),
		mpb.PrependDecorators(decor.Name("steps "), decor.CountersNoUnit("%d/%d ")),
		mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_MMSS), decor.Any(func(decor.Statistics) string { return *p.at.Load() })))
	p.at.Store(new(string))
	go p.follow(running)
	return p
}

// follow keeps what is at work beside the bar: of several steps that which runs longest.
func (p *progress) follow(running func() []ask.RunningStep) {
	const look = 250 * time.Millisecond
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-tick.C:
		}
		text := ""
		if steps := running(); len(steps) > 0 {
			text = "  " + screen.Plain(screen.Short(fmt.Sprintf("%s of %s", steps[0].Step, steps[0].Label), 30))
			if told := progressText(steps[0].Progress, time.Since(steps[0].Since)); told != "" {
				text += ": " + told
			}
		}
		p.at.Store(&text)
	}
}

// progressText words how far a step has come, bytes in larger units and with their rate.
func progressText(p *ask.ProgressDetail, since time.Duration) string {
	var done, total int64
	if p == nil {
		return ""
	}
	if n, _ := fmt.Sscanf(p.Note, "%d of %d bytes", &done, &total); n != 2 || !strings.HasSuffix(p.Note, " bytes") {
		return screen.Plain(p.String())
	}
	text := fmt.Sprintf("% .1f of % .1f", decor.SizeB1000(done), decor.SizeB1000(total))
	if since > time.Second {
		text += fmt.Sprintf(", % .0f/s", decor.SizeB1000(float64(done)/since.Seconds()))
	}
	return text
}

// report is called by one goroutine at a time.
func (p *progress) report(r engine.Report) {
	if r.Ended != nil {
		p.done++
	}
	if p.bar != nil {
		p.total = max(p.total, p.done+int64(r.Left))
		p.bar.SetTotal(p.total, false)
		p.bar.SetCurrent(p.done)
	}
	line := reportLine(r)
	logReport(p.a.Log, r)
	switch {
	case line == "" || p.quiet && !r.Grave || r.Summed && !p.watch:
	case p.bars == nil:
		p.a.Say(line)
	default:
		p.above(line, r)
	}
}

// above prints over the bar what tells of an item; the steps between with --verbose alone.
func (p *progress) above(line string, r engine.Report) {
	if end := r.Ended; end != nil && end.Done && !p.a.Verbose {
		line = fmt.Sprintf("%-11s %s  %s  %s", state.Completed, end.Item.Short(), end.Workflow, end.Label)
	} else if end != nil && end.Status != state.Failed && !p.a.Verbose {
		return
	}
	fmt.Fprintln(p.bars, p.a.Line(line))
}

// logReport logs what is reported.
func logReport(log *slog.Logger, r engine.Report) {
	switch {
	case log == nil:
	case r.Note != "" && r.Grave:
		log.Warn(withRemedies(r.Note, r.Remedies...))
	case r.Note != "":
		log.Info(withRemedies(r.Note, r.Remedies...))
	case r.Admitted != nil && r.Admitted.Rejected != "":
		log.Warn("rejected", "collection", r.Admitted.Collection, "label", r.Admitted.Label, "why", r.Admitted.Rejected, "keptAs", r.Admitted.KeptAs)
	case r.Admitted != nil:
		log.Info("taken in", "item", r.Admitted.Item, "collection", r.Admitted.Collection, "label", r.Admitted.Label, "workflow", r.Admitted.Workflow)
	case r.Ended != nil:
		level := slog.LevelInfo
		if r.Ended.Status == state.Failed {
			level = slog.LevelError
		}
		log.Log(context.Background(), level, "step ended", "item", r.Ended.Item, "label", r.Ended.Label, "workflow", r.Ended.Workflow,
			"step", r.Ended.Step, "status", r.Ended.Status, "message", r.Ended.Message)
	}
}

func reportLine(r engine.Report) string {
	switch {
	case r.Note != "":
		return withRemedies(r.Note, r.Remedies...)
	case r.Admitted != nil:
		return admittedText(*r.Admitted)
	case r.Ended != nil:
		text := fmt.Sprintf("%-11s %s  %s/%s  %s", r.Ended.Status, r.Ended.Item.Short(), r.Ended.Workflow, r.Ended.Step, r.Ended.Label)
		if r.Ended.Message != "" {
			text += ": " + ledger.OneLine(r.Ended.Message, 200)
		}
		return text
	}
	return ""
}

func (p *progress) close() {
	close(p.ended)
	if p.bar != nil {
		p.at.Store(new(string)) // nothing is at work any more
		p.bar.SetTotal(p.done, true)
		p.bars.Wait()
	}
}
