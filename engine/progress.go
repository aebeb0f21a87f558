package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/claim"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// How far an attempt has come stands in its scratch folder while it runs
// (steps.ReadProgress), and the last of it in the record once it has ended.

// ProgressDetail is what a robot told of how far it has come.
type ProgressDetail struct {
	At      time.Time `json:"at,omitzero"`
	Note    string    `json:"note,omitempty"`
	Percent *int      `json:"percent,omitempty"`
}

// String is "40% page 12"; "" of nothing.
func (p *ProgressDetail) String() string {
	switch {
	case p == nil:
		return ""
	case p.Percent == nil:
		return p.Note
	}
	return strings.TrimSpace(fmt.Sprintf("%d%% %s", *p.Percent, p.Note))
}

func detailOf(at time.Time, note string, percent int) *ProgressDetail {
	d := &ProgressDetail{At: at, Note: printable(note)}
	if percent >= 0 {
		d.Percent = &percent
	}
	return d
}

// progressOf reads the progress of an attempt, wherever it stands.
func (e *Engine) progressOf(id layout.ItemID, workflow string, step layout.Name, k layout.AttemptKey, a state.Attempt) *ProgressDetail {
	if a.Progress != nil {
		return detailOf(a.Progress.At, a.Progress.Note, a.Progress.Percent)
	}
	if a.State != state.InProgress {
		return nil
	}
	return e.liveProgress(&Attempt{Item: id, Workflow: workflow, Step: step, Key: k})
}

func (e *Engine) liveProgress(a *Attempt) *ProgressDetail {
	p, ok := steps.ReadProgress(e.scratchDir(a))
	if !ok {
		return nil
	}
	return detailOf(p.At, p.Note, p.Percent)
}

// keepProgress has the attempt's end record what was told last.
func (w *work) keepProgress() {
	if w.scratch == "" {
		return
	}
	if p, ok := steps.ReadProgress(w.scratch); ok {
		w.attempt.progress = &state.Progress{At: p.At, Note: printable(p.Note), Percent: p.Percent}
	}
}

// NotRunningError is a step that cannot have come any further, as it does not run.
type NotRunningError struct {
	Step layout.Name
	Why  string
}

func (e *NotRunningError) Error() string { return fmt.Sprintf("step %s %s", e.Step, e.Why) }

// Progress tells how far a step that runs has come, in place of its robot or from
// within it; percent is -1 when it is not known. attempt, when it is not "", must
// be the one that runs. Nothing is committed.
func (e *Engine) Progress(ref StepRef, attempt, note string, percent int) error {
	_, rec, err := e.readTip(ref.Item, "")
	if err != nil {
		return err
	}
	if ref.Workflow, err = e.instance(rec, ref); err != nil {
		return err
	}
	_, s := rec.execution.Find(ref.Workflow, ref.Step)
	if s == nil || s.Status != state.InProgress {
		return &NotRunningError{ref.Step, "is not in progress"}
	}
	k, _, _ := s.Current()
	if attempt != "" && attempt != k.String() {
		return &NotRunningError{ref.Step, fmt.Sprintf("is in progress by attempt %s, not by %s", k, attempt)}
	}
	a := &Attempt{Item: ref.Item, Workflow: ref.Workflow, Step: ref.Step, Key: k}
	err = steps.TellProgress(e.scratchDir(a), steps.Progress{Note: note, Percent: percent})
	if errors.Is(err, fs.ErrNotExist) {
		return &NotRunningError{ref.Step, "is claimed and has not begun here"}
	}
	return err
}

// RunningStep is a step in progress.
type RunningStep struct {
	Item       layout.ItemID   `json:"item"`
	Collection layout.Name     `json:"collection"`
	Label      string          `json:"label"`
	Workflow   string          `json:"workflow"`
	Step       layout.Name     `json:"step"`
	Since      time.Time       `json:"since"`
	Runner     string          `json:"runner"`
	Gone       bool            `json:"gone,omitempty"` // its engine is; the next run resumes it
	Progress   *ProgressDetail `json:"progress,omitempty"`
}

// running lists the steps in progress, those that run longest first.
func (e *Engine) running() []RunningStep {
	out := []RunningStep{}
	for _, it := range e.index.Running() {
		for r := range it.Runs {
			out = append(out, e.runningOf(it, &it.Runs[r])...)
		}
	}
	slices.SortFunc(out, func(a, b RunningStep) int { return a.Since.Compare(b.Since) })
	return out
}

func (e *Engine) runningOf(it *queue.Item, run *queue.Run) (out []RunningStep) {
	for i := range run.Steps {
		s := &run.Steps[i]
		if s.Status != state.InProgress {
			continue
		}
		step := layout.Name(run.Plan.Steps[i].Name)
		out = append(out, RunningStep{Item: it.ID, Collection: it.Collection, Label: it.Label, Workflow: run.Name, Step: step,
			Since: s.Since, Runner: s.Runner, Gone: e.goneFrom(s),
			Progress: e.liveProgress(&Attempt{Item: it.ID, Workflow: run.Name, Step: step, Key: s.Current})})
	}
	return out
}

// goneFrom tells whether the engine that a step is in progress by has ended, on this
// machine, without ending the step.
func (e *Engine) goneFrom(s *queue.Step) bool {
	if s.Current.Engine == e.id || !strings.HasPrefix(s.Runner, e.o.Host.Name+":") {
		return false
	}
	registered, err := claim.NewObserver(e.root, e.o.Host, e.clock).Engines()
	return err == nil && !slices.ContainsFunc(registered, func(r claim.Registered) bool { return r.ID == s.Current.Engine && r.Alive })
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
