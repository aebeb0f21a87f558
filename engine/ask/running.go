package ask

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/claim"
	"bagpipe/engine/ledger"
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
	d := &ProgressDetail{At: at, Note: ledger.Printable(note)}
	if percent >= 0 {
		d.Percent = &percent
	}
	return d
}

// progressOf reads the progress of an attempt, wherever it stands.
func (an *Answers) progressOf(id layout.ItemID, workflow string, step layout.Name, k layout.AttemptKey, a state.Attempt) *ProgressDetail {
	if a.Progress != nil {
		return detailOf(a.Progress.At, a.Progress.Note, a.Progress.Percent)
	}
	if a.State != state.InProgress {
		return nil
	}
	return an.liveProgress(layout.AttemptRef{Item: id, Workflow: workflow, Step: step, Key: k})
}

func (an *Answers) liveProgress(a layout.AttemptRef) *ProgressDetail {
	p, ok := steps.ReadProgress(an.folder.ScratchDir(a))
	if !ok {
		return nil
	}
	return detailOf(p.At, p.Note, p.Percent)
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
func (an *Answers) running() []RunningStep {
	out := []RunningStep{}
	for _, it := range an.index.Loaded().Running() {
		for r := range it.Runs {
			out = append(out, an.runningOf(it, &it.Runs[r])...)
		}
	}
	slices.SortFunc(out, func(a, b RunningStep) int { return a.Since.Compare(b.Since) })
	return out
}

func (an *Answers) runningOf(it *queue.Item, run *queue.Run) (out []RunningStep) {
	for i := range run.Steps {
		s := &run.Steps[i]
		if s.Status != state.InProgress {
			continue
		}
		step := layout.Name(run.Plan.Steps[i].Name)
		out = append(out, RunningStep{Item: it.ID, Collection: it.Collection, Label: it.Label, Workflow: run.Name, Step: step,
			Since: s.Since, Runner: s.Runner, Gone: an.goneFrom(s),
			Progress: an.liveProgress(layout.AttemptRef{Item: it.ID, Workflow: run.Name, Step: step, Key: s.Current})})
	}
	return out
}

// goneFrom tells whether the engine that a step is in progress by has ended, on this
// machine, without ending the step.
func (an *Answers) goneFrom(s *queue.Step) bool {
	if s.Current.Engine == an.ledger.ID || !strings.HasPrefix(s.Runner, an.ledger.Host.Name+":") {
		return false
	}
	registered, err := claim.NewObserver(an.ledger.Root, an.ledger.Host, an.ledger.Clock).Engines()
	return err == nil && !slices.ContainsFunc(registered, func(r claim.Registered) bool { return r.ID == s.Current.Engine && r.Alive })
}
