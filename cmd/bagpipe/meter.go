package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"bagpipe/bags"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// meter shows how far the work on many files has come: a bar on a terminal, one
// object a line with --json, and otherwise a line now and then.
type meter struct {
	a     *app
	what  string
	json  bool
	every time.Duration
	start time.Time
	next  time.Time
	bars  *mpb.Progress
	bar   *mpb.Bar
	last  bags.Progress
}

// How often a line is printed; a bar is redrawn by itself.
const (
	barEvery  = 100 * time.Millisecond
	jsonEvery = time.Second
	lineEvery = 10 * time.Second
)

// newMeter gives a meter whose report is nil-safe and cheap to call.
func newMeter(a *app, what string, asJSON, quiet bool) *meter {
	now := time.Now()
	m := &meter{a: a, what: what, json: asJSON, start: now, every: lineEvery}
	f, isFile := a.err.(*os.File)
	switch {
	case quiet:
		m.every = 0
		return m
	case asJSON:
		m.every = jsonEvery
	case isFile && term.IsTerminal(int(f.Fd())):
		m.every = barEvery
		m.bars = mpb.New(mpb.WithOutput(f), mpb.WithWidth(40))
		m.bar = m.bars.New(0, mpb.BarStyle(),
			mpb.PrependDecorators(decor.Name(what+" "), decor.Counters(decor.SizeB1000(0), "% .1f/% .1f")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return m.text() })))
	}
	m.next = now.Add(m.every)
	return m
}

// report is called by one goroutine at a time.
func (m *meter) report(p bags.Progress) {
	if m.every == 0 {
		return
	}
	now := time.Now()
	if now.Before(m.next) {
		return
	}
	m.next = now.Add(m.every)
	s := moment{Progress: p, elapsed: now.Sub(m.start)}
	switch {
	case m.bar != nil:
		m.bar.SetTotal(p.TotalBytes, false)
		m.bar.SetCurrent(min(p.Bytes, p.TotalBytes))
	case m.json:
		s.event(m.a, m.what)
	default:
		m.a.talk("%s: %s", m.what, s.text())
	}
	m.last = p
}

// text is asked for by the bar, on its own goroutine: the bar's numbers alone.
func (m *meter) text() string {
	return " " + moment{Progress: bags.Progress{Bytes: m.bar.Current()}, elapsed: time.Since(m.start)}.rateText()
}

func (m *meter) close() {
	if m.bar != nil {
		m.bar.SetTotal(-1, true)
		m.bars.Wait()
	}
}

// moment is how far the work is after a while.
type moment struct {
	bags.Progress
	elapsed time.Duration
}

// rate is bytes a second.
func (s moment) rate() float64 { return float64(s.Bytes) / max(s.elapsed.Seconds(), 1e-3) }

// left is the time that the rest takes at the rate so far.
func (s moment) left() time.Duration {
	if s.Bytes <= 0 || s.TotalBytes <= s.Bytes {
		return 0
	}
	return time.Duration(float64(s.TotalBytes-s.Bytes) / s.rate() * float64(time.Second)).Round(time.Second)
}

func (s moment) rateText() string { return fmt.Sprintf("%.0f MB/s", s.rate()/1e6) }

func (s moment) text() string {
	return fmt.Sprintf("%d of %d files, %.1f of %.1f MB, %s, %s left",
		s.Files, s.TotalFiles, float64(s.Bytes)/1e6, float64(s.TotalBytes)/1e6, s.rateText(), s.left())
}

// event prints one object on a line of its own.
func (s moment) event(a *app, what string) {
	data, err := json.Marshal(struct {
		Event      string  `json:"event"`
		Work       string  `json:"work"`
		Files      int64   `json:"files"`
		TotalFiles int64   `json:"totalFiles"`
		Bytes      int64   `json:"bytes"`
		TotalBytes int64   `json:"totalBytes"`
		Rate       int64   `json:"bytesPerSecond"`
		Left       float64 `json:"secondsLeft"`
	}{"progress", what, s.Files, s.TotalFiles, s.Bytes, s.TotalBytes, int64(s.rate()), s.left().Seconds()})
	if err == nil {
		a.talk("%s", data)
	}
}
