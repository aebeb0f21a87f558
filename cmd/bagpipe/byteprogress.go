package main

import (
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"bagpipe/bags"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// How often progress is shown, on a terminal and as events.
const (
	eventEvery = time.Second
)

// byteProgress shows how far work on bytes has come: a bar on a terminal, objects
// with --json, nothing otherwise.
type byteProgress struct {
	a     *app
	start time.Time
	every time.Duration

	mu   sync.Mutex // guards last
	last time.Time
	bars *mpb.Progress
	bar  *mpb.Bar
	json bool
}

func newByteProgress(a *app, quiet, asJSON bool) *byteProgress {
	now := time.Now()
	p := &byteProgress{a: a, start: now, last: now, every: eventEvery, json: asJSON && !quiet}
	f, ok := a.err.(*os.File)
	if quiet || asJSON || !ok || !term.IsTerminal(int(f.Fd())) {
		return p
	}
	p.every = barEvery
	p.bars = mpb.New(mpb.WithOutput(f), mpb.WithWidth(50))
	p.bar = p.bars.New(0, mpb.BarStyle(),
		mpb.PrependDecorators(decor.CountersKibiByte("% .1f / % .1f")),
		mpb.AppendDecorators(decor.AverageSpeed(decor.SizeB1024(0), "% .1f"), decor.Name("  "), decor.AverageETA(decor.ET_STYLE_MMSS)))
	return p
}

// report takes the state of the work; calls may come from several goroutines.
func (p *byteProgress) report(s bags.Progress) {
	if p.bar == nil && !p.json {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.last) < p.every {
		return
	}
	p.last = now
	if p.bar != nil {
		p.bar.SetTotal(max(s.TotalBytes, s.Bytes), false)
		p.bar.SetCurrent(s.Bytes)
		return
	}
	p.event(s, now)
}

// event says bytes, files and rate, and the seconds that remain where the whole is
// known.
func (p *byteProgress) event(s bags.Progress, now time.Time) {
	rate := float64(s.Bytes) / now.Sub(p.start).Seconds()
	v := map[string]any{"files": s.Files, "bytes": s.Bytes, "bytesPerSecond": int64(rate)}
	if s.TotalBytes > 0 {
		v["totalFiles"], v["totalBytes"] = s.TotalFiles, s.TotalBytes
		v["secondsLeft"] = int64(float64(s.TotalBytes-s.Bytes) / max(rate, 1))
	}
	p.a.event("progress", v)
}

func (p *byteProgress) close() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}

// event prints one object on a line of its own.
func (a *app) event(name string, v map[string]any) {
	v["event"] = name
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		a.talk("bagpipe: %v", err)
	}
}

// archiveFailed reports what is wrong with an archive as an event, too.
func (a *app) archiveFailed(err error, asJSON bool) error {
	var broken *bags.Error
	if asJSON && errors.As(err, &broken) {
		a.event("problem", problemOf(broken))
	}
	return err
}
