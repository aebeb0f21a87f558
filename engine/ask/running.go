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
func (ac *Activity) progressOf(id layout.ItemID, workflow string, step layout.Name, k layout.AttemptKey, a state.Attempt) *ProgressDetail {
	if a.State == state.Completed || a.State == state.Skipped { // older records have some
		return nil
	}
	if a.State == state.InProgress { // what is committed of it meanwhile may be older
		if live := ac.liveProgress(layout.AttemptRef{Item: id, Workflow: workflow, Step: step, Key: k}); live != nil {
			return live
		}
	}
	if a.Progress == nil {
		return nil
	}
	return detailOf(a.Progress.At, a.Progress.Note, a.Progress.Percent)
}

func (ac *Activity) liveProgress(a layout.AttemptRef) *ProgressDetail {
	p, ok := steps.ReadProgress(ac.folder.ScratchDir(a))
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

// Running lists the steps in progress, those that run longest first.
func (ac *Activity) Running() []RunningStep {
	out := []RunningStep{}
	for _, it := range ac.index.Loaded().Running() {
		for r := range it.Runs {
			out = append(out, ac.runningOf(it, &it.Runs[r])...)
		}
	}
	slices.SortFunc(out, func(a, b RunningStep) int { return a.Since.Compare(b.Since) })
	return out
}

func (ac *Activity) runningOf(it *queue.Item, run *queue.Run) (out []RunningStep) {
	for i := range run.Steps {
		s := &run.Steps[i]
		if s.Status != state.InProgress {
			continue
		}
		step := layout.Name(run.Plan.Steps[i].Name)
		out = append(out, RunningStep{Item: it.ID, Collection: it.Collection, Label: it.Label, Workflow: run.Name, Step: step,
			Since: s.Since, Runner: s.Runner, Gone: ac.goneFrom(s),
			Progress: ac.liveProgress(layout.AttemptRef{Item: it.ID, Workflow: run.Name, Step: step, Key: s.Current})})
	}
	return out
}

// goneFrom tells whether the engine that a step is in progress by has ended, on this
// machine, without ending the step.
func (ac *Activity) goneFrom(s *queue.Step) bool {
	if s.Current.Engine == ac.ledger.ID || !strings.HasPrefix(s.Runner, ac.ledger.Host.Name+":") || !ac.ledger.Site.Mine(state.SiteOf(s.Runner)) {
		return false
	}
	registered, err := claim.NewObserver(ac.ledger.Root, ac.ledger.Host, ac.ledger.Clock).Engines()
	return err == nil && !slices.ContainsFunc(registered, func(r claim.Registered) bool { return r.ID == s.Current.Engine && r.Alive })
}
