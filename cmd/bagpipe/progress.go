package main

import (
	"fmt"
	"os"

	"bagpipe/engine"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// progress shows how a run goes: a bar on a terminal, lines otherwise.
type progress struct {
	a     *app
	quiet bool
	bars  *mpb.Progress
	bar   *mpb.Bar
	total int64
	done  int64
}

func newProgress(a *app, quiet, watch bool) *progress {
	p := &progress{a: a, quiet: quiet}
	f, ok := a.err.(*os.File)
	if quiet || watch || !ok || !term.IsTerminal(int(f.Fd())) {
		return p
	}
	p.bars = mpb.New(mpb.WithOutput(f), mpb.WithWidth(50))
	p.bar = p.bars.New(0, mpb.BarStyle(),
		mpb.PrependDecorators(decor.Name("steps "), decor.CountersNoUnit("%d/%d")),
		mpb.AppendDecorators(decor.Percentage(), decor.Name("  "), decor.Elapsed(decor.ET_STYLE_MMSS)))
	return p
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
	if line := reportLine(r); line != "" && (!p.quiet || r.Grave) {
		p.line(line, r.Note != "" || r.Admitted != nil && r.Admitted.Rejected != "")
	}
}

// line prints above the bar what matters, and everything where there is none.
func (p *progress) line(text string, matters bool) {
	switch {
	case p.bars == nil:
		p.a.talk("%s", text)
	case matters:
		fmt.Fprintln(p.bars, text)
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
			text += ": " + short(r.Ended.Message, 200)
		}
		return text
	}
	return ""
}

func (p *progress) close() {
	if p.bar != nil {
		p.bar.SetTotal(p.done, true)
		p.bars.Wait()
	}
}
