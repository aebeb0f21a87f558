package engine

import (
	"fmt"
	"strings"
	"time"

	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Waiting is one step that is not done, the one thing it waits for, and what would
// let it go on.
type Waiting struct {
	Workflow string       `json:"workflow"`
	Step     layout.Name  `json:"step"`
	Status   state.Status `json:"status"`
	Code     string       `json:"code"` // of the reason: ready, limit, requires, manual, date, …
	Why      string       `json:"why"`
	Since    time.Time    `json:"since,omitzero"`
	Until    time.Time    `json:"until,omitzero"`
	Before   int          `json:"before"` // steps that are handed out earlier, of one that is ready
	Command  string       `json:"command,omitempty"`
}

// Explained is why an item's steps wait.
type Explained struct {
	Item  layout.ItemID `json:"item"`
	Label string        `json:"label"`
	Why   string        `json:"why,omitempty"` // of the item as a whole
	Steps []Waiting     `json:"steps"`
}

// Why says of each step of an item that is not done, or of one of them, what it waits
// for. Load must have been called.
func (e *Engine) Why(id layout.ItemID, workflow string, step layout.Name) (Explained, error) {
	now := e.o.Now()
	e.index.Settle(now)
	it := e.index.Item(id)
	if it == nil {
		return Explained{}, &NoItemError{Ref: string(id)}
	}
	out := Explained{Item: id, Label: it.Label, Steps: []Waiting{}}
	if it.Broken != "" {
		out.Why = it.Broken
		return out, nil
	}
	found := false
	for r := range it.Runs {
		run := &it.Runs[r]
		if workflow != "" && workflow != run.Name && workflow != run.Plan.Name {
			continue
		}
		for i := range run.Steps {
			name := layout.Name(run.Plan.Steps[i].Name)
			if step != "" && step != name {
				continue
			}
			found = true
			if w, open := e.waiting(it, run, i, now); open || step != "" {
				out.Steps = append(out.Steps, w)
			}
		}
	}
	if step != "" && !found {
		return out, fmt.Errorf("item %s has no step %s; bagpipe show %s lists them", id.Short(), strings.TrimPrefix(workflow+"/"+string(step), "/"), id.Short())
	}
	if workflow != "" && !found {
		return out, fmt.Errorf("item %s has no workflow %s; bagpipe show %s lists them", id.Short(), workflow, id.Short())
	}
	switch {
	case len(it.Runs) == 0:
		out.Why = "no workflow was started on it; start one with: bagpipe start WORKFLOW " + id.Short()
	case len(out.Steps) == 0:
		out.Why = "every step is done"
	}
	return out, nil
}

// waiting says what one step waits for; open is false when it is done.
func (e *Engine) waiting(it *queue.Item, run *queue.Run, i int, now time.Time) (w Waiting, open bool) {
	s := &run.Steps[i]
	w = Waiting{Workflow: run.Name, Step: layout.Name(run.Plan.Steps[i].Name), Status: s.Status, Since: s.Since}
	on := it.ID.Short() + " " + run.Name + "/" + string(w.Step)
	why := it.BlockedAt(run, i, now)
	if why == nil {
		e.placed(&w, it, run, i, now)
		return w, true
	}
	w.Code, w.Why, w.Until, w.Command = why.Code, why.Text, why.Until, e.unblocks(it, run, i, why.Code)
	switch why.Code {
	case "done":
		return w, false
	case "manual":
		w.Why += " since " + layout.FormatTime(s.Since)
	case "retry":
		w.Why += fmt.Sprintf(" (after %s)", attemptsText(s.Attempts))
	case "running":
		if e.goneFrom(s) {
			w.Why = "was in progress by " + s.Runner + ", which is gone; the next run resumes it"
		}
	case "requires":
		e.prerequisites(&w, it, run, i)
	case "failed":
		return e.failedWaiting(w, it, run, i, on)
	}
	return w, true
}

// unblocks is the command that lets a step go on that waits for such a reason; "" where
// there is none but to wait, or the reason names it itself.
func (e *Engine) unblocks(it *queue.Item, run *queue.Run, i int, code string) string {
	item, step := it.ID.Short(), run.Plan.Steps[i].Name
	switch code {
	case "held":
		return "bagpipe release " + item
	case "inactive":
		return "bagpipe workflow activate " + item + " " + run.Name
	case "manual":
		return "bagpipe step complete " + item + " " + run.Name + "/" + step
	case "retry":
		return "bagpipe step retry " + item + " " + run.Name + "/" + step
	case disabledCode:
		return "bagpipe step enable " + run.Plan.Name + "/" + step
	case "running":
		if e.goneFrom(&run.Steps[i]) {
			return "bagpipe run"
		}
	}
	return ""
}

func attemptsText(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// placed says what is before a step that is ready.
func (e *Engine) placed(w *Waiting, it *queue.Item, run *queue.Run, i int, now time.Time) {
	before, limit, taken, _ := e.index.Place(it.ID, run.Name, i, now)
	w.Code, w.Before, w.Why, w.Command = "ready", before, "ready, and next", "bagpipe run"
	switch {
	case taken:
		w.Why, w.Command = "ready, and taken by this engine", ""
	case limit != "":
		w.Code, w.Why, w.Command = "limit", "ready, but "+limit, "bagpipe status" // shows what is in progress
		if strings.HasPrefix(limit, "step ") {
			w.Command = fmt.Sprintf("bagpipe items --workflow %s --step %s --status in-progress", run.Plan.Name, w.Step)
		}
	case before > 0:
		w.Why = fmt.Sprintf("ready, %d before it", before)
	}
	for _, cold := range e.coldSteps() {
		if strings.Contains(cold, run.Plan.Name+"/"+string(w.Step)) {
			w.Why += "; " + cold
		}
	}
}

// coldSteps are the steps that engines do not claim as their warm-up failed.
func (e *Engine) coldSteps() []string {
	_, cold, err := e.engines()
	if err != nil {
		return nil // it only adds to the answer
	}
	return cold
}

// prerequisites names, of what a step requires, the one that is open and stands
// nearest to being done: a person's, one that failed, one that runs, or else the first.
func (e *Engine) prerequisites(w *Waiting, it *queue.Item, run *queue.Run, i int) {
	for _, p := range run.Plan.Prerequisites(i) {
		s := &run.Steps[p]
		name := run.Plan.Steps[p].Name
		on := it.ID.Short() + " " + run.Name + "/" + name
		switch {
		case it.Waits(run, p):
			w.Why = fmt.Sprintf("waits for %s, which waits for a person since %s", name, layout.FormatTime(s.Since))
			w.Command = "bagpipe step complete " + on
			return
		case s.Status == state.InProgress:
			w.Why = fmt.Sprintf("waits for %s, which is in progress by %s since %s", name, s.Runner, layout.FormatTime(s.Since))
			if e.goneFrom(s) {
				w.Why = fmt.Sprintf("waits for %s, which was in progress by %s, which is gone; the next run resumes it", name, s.Runner)
			}
			w.Command = e.unblocks(it, run, p, "running")
			return
		case s.Status == state.Waiting && s.Blocked != nil && s.Blocked.Code != "requires":
			text, of := s.Blocked.Text, ": "
			for _, verb := range []string{"the step is ", "is ", "waits "} {
				if strings.HasPrefix(text, verb) {
					text, of = strings.TrimPrefix(text, "the step "), ", which "
					break
				}
			}
			w.Why, w.Command = "waits for "+name+of+text, e.unblocks(it, run, p, s.Blocked.Code)
			return
		}
	}
}

// failedWaiting tells the failure of a step, or of the one that stopped its workflow.
func (e *Engine) failedWaiting(w Waiting, it *queue.Item, run *queue.Run, i int, on string) (Waiting, bool) {
	s := &run.Steps[i]
	switch {
	case s.Status == state.Failed && run.Plan.Steps[i].Tolerated():
		w.Why = "failed, and need not succeed: " + s.Message
		return w, false
	case s.Status == state.Failed:
		w.Why = fmt.Sprintf("failed (%s) at %s after %s: %s", s.Kind, layout.FormatTime(s.Since), attemptsText(s.Attempts), s.Message)
		w.Command = "bagpipe step retry " + on
		return w, true
	case run.Internal != "":
		w.Command = "bagpipe workflow activate " + it.ID.Short() + " " + run.Name
		return w, true
	}
	for p := range run.Steps {
		if f := &run.Steps[p]; f.Status == state.Failed && !run.Plan.Steps[p].Tolerated() {
			name := run.Plan.Steps[p].Name
			w.Why = fmt.Sprintf("the workflow stands still as %s failed at %s: %s", name, layout.FormatTime(f.Since), f.Message)
			w.Command = "bagpipe step retry " + it.ID.Short() + " " + run.Name + "/" + name
			break
		}
	}
	return w, true
}
