package screen

import (
	"fmt"
	"io"
	"os"
	"time"

	"bagpipe/bags/files"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// Meter shows how far the work on many files has come: a bar on a terminal, one
// object a line with --json, and otherwise a line now and then.
type Meter struct {
	s      *Screen
	what   string
	events io.Writer // nil: lines, or a bar
	every  time.Duration
	start  time.Time
	next   time.Time
	bars   *mpb.Progress
	bar    *mpb.Bar
}

// How often a line is printed; a bar is redrawn by itself.
const (
	barEvery  = 100 * time.Millisecond
	jsonEvery = time.Second
	lineEvery = 10 * time.Second
	firstLine = 2 * time.Second // what is quiet for longer seems to hang
)

// NewMeter gives a meter whose report is cheap to call. Where events is not nil,
// they go there.
func NewMeter(s *Screen, what string, events io.Writer, quiet bool) *Meter {
	now := time.Now()
	m := &Meter{s: s, what: what, events: events, start: now, every: lineEvery}
	f, isFile := s.Err.(*os.File)
	switch {
	case quiet:
		m.every = 0
		return m
	case events != nil:
		m.every = jsonEvery
	case isFile && term.IsTerminal(int(f.Fd())):
		m.every = barEvery
		m.bars = mpb.New(mpb.WithOutput(f), mpb.WithWidth(40))
		m.bar = m.bars.New(0, mpb.BarStyle(),
			mpb.PrependDecorators(decor.Name(what+" "), decor.Counters(decor.SizeB1000(0), "% .1f/% .1f")),
			mpb.AppendDecorators(decor.AverageSpeed(decor.SizeB1000(0), " % .1f"), decor.Name("  "), decor.AverageETA(decor.ET_STYLE_MMSS)))
	}
	m.next = now.Add(min(m.every, firstLine))
	return m
}

// Report is called by one goroutine at a time.
func (m *Meter) Report(p files.Progress) {
	if m.every == 0 {
		return
	}
	now := time.Now()
	if now.Before(m.next) {
		return
	}
	m.next = now.Add(m.every)
	at := moment{Progress: p, elapsed: now.Sub(m.start)}
	switch {
	case m.bar != nil:
		m.bar.SetTotal(max(p.TotalBytes, p.Bytes), false)
		m.bar.SetCurrent(p.Bytes)
	case m.events != nil:
		m.s.EventTo(m.events, "progress", at.fields(m.what))
	default:
		m.s.Talk("%s: %s", m.what, at.text())
	}
}

// Close leaves no bar behind: what was done is said by the command.
func (m *Meter) Close() {
	if m.bar != nil {
		m.bar.Abort(true)
		m.bars.Wait()
	}
}

// moment is how far the work is after a while.
type moment struct {
	files.Progress
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

// text says of the whole and of what remains only what is known.
func (s moment) text() string {
	if s.TotalBytes <= 0 {
		return fmt.Sprintf("%d files, %.1f MB, %.0f MB/s", s.Files, float64(s.Bytes)/1e6, s.rate()/1e6)
	}
	return fmt.Sprintf("%d of %d files, %.1f of %.1f MB, %.0f MB/s, %s left",
		s.Files, s.TotalFiles, float64(s.Bytes)/1e6, float64(s.TotalBytes)/1e6, s.rate()/1e6, s.left())
}

// fields are those of an event.
func (s moment) fields(what string) map[string]any {
	v := map[string]any{"work": what, "files": s.Files, "bytes": s.Bytes, "bytesPerSecond": int64(s.rate())}
	if s.TotalBytes > 0 {
		v["totalFiles"], v["totalBytes"], v["secondsLeft"] = s.TotalFiles, s.TotalBytes, s.left().Seconds()
	}
	return v
}
