package attempt

import (
	"fmt"
	"sync"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/steps"
)

// keepProgress has the end of an attempt that failed record what was told last; one that
// came to its end is past all of it.
func (w *Work) keepProgress() {
	if w.scratch == "" || w.Err == nil {
		return
	}
	if p, ok := steps.ReadProgress(w.scratch); ok {
		w.attempt.progress = &state.Progress{At: p.At, Note: ledger.Printable(p.Note), Percent: p.Percent}
	}
}

// tellEvery is how often at most a built-in robot's bytes become a line.
const tellEvery = time.Second

// tellProgress lets a built-in robot's bytes be told; the function it gives ends
// that. A robot that ends sooner than tellEvery tells nothing.
func tellProgress(c *steps.Call) (stop func()) {
	t := &teller{scratch: c.Scratch}
	c.Progress = t.note
	return t.stop
}

// teller writes the newest count, now and then.
type teller struct {
	scratch string

	mu          sync.Mutex // guards the rest
	done, total int64
	told        int64
	timer       *time.Timer
	ended       bool
}

func (t *teller) note(done, total int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done, t.total = done, total
	if t.timer == nil && !t.ended {
		t.timer = time.AfterFunc(tellEvery, t.tell)
	}
}

func (t *teller) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	if t.told != t.done {
		t.told = t.done
		p := steps.Progress{Note: fmt.Sprintf("%d bytes", t.done), Percent: -1}
		if t.total > 0 {
			p.Note, p.Percent = fmt.Sprintf("%d of %d bytes", t.done, t.total), int(min(100, 100*float64(t.done)/float64(t.total)))
		}
		_ = steps.TellProgress(t.scratch, p) // told or not, the step goes on
	}
	t.timer.Reset(tellEvery)
}

func (t *teller) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.timer != nil {
		t.timer.Stop()
	}
}
