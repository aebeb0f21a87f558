package engine

import (
	"slices"
	"time"

	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// StepControl is how a step of a workflow stands over all items.
type StepControl struct {
	Step    string              `json:"step"` // WORKFLOW/STEP
	Status  state.ControlStatus `json:"status"`
	At      time.Time           `json:"at"`
	By      string              `json:"by"`
	Text    string              `json:"text,omitempty"`
	Until   time.Time           `json:"until,omitzero"` // from when on one item is tried
	Trial   layout.ItemID       `json:"trial,omitempty"`
	Waiting int                 `json:"waiting"` // items that only wait for it
	ref     state.Ref
}

// stepControls lists the steps that are listed and wanted; Load must have been
// called.
func (e *Engine) stepControls(want func(StepControl) bool) []StepControl {
	out := []StepControl{}
	for ref, c := range e.controls.current().Steps {
		s := StepControl{Step: ref.String(), Status: c.Status, At: c.At, By: printable(c.By), Text: printable(c.Text), Until: c.Until, ref: ref}
		if c.Trial != nil {
			s.Trial = c.Trial.Item
		}
		if want(s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b StepControl) int { return compareRefs(a.ref, b.ref) })
	if len(out) == 0 {
		return out
	}
	waiting := map[state.Ref]int{}
	e.eachOff(func(en queue.Entry, _ *queue.Step) bool {
		waiting[refOf(en.Run, en.Step)]++
		return true
	})
	for i := range out {
		out[i].Waiting = waiting[out[i].ref]
	}
	return out
}

// eachOff visits the steps that only wait as they are disabled, until visit has seen
// enough.
func (e *Engine) eachOff(visit func(queue.Entry, *queue.Step) bool) {
	for it := range e.index.Off() {
		for r := range it.Runs {
			run := &it.Runs[r]
			for i := range run.Steps {
				if !run.Steps[i].Off() || it.Held || it.Broken != "" {
					continue
				}
				if !visit(queue.Entry{Item: it, Run: run.Name, Step: layout.Name(run.Plan.Steps[i].Name), N: i}, &run.Steps[i]) {
					return
				}
			}
		}
	}
}

// offRows are the lines of a queue for steps that only wait as they are disabled,
// but for those whose trial is due, which are ready: as many as are wanted.
func (e *Engine) offRows(most int, want func(queue.Entry) bool) (rows []QueueRow) {
	if most <= 0 {
		return nil
	}
	e.eachOff(func(en queue.Entry, s *queue.Step) bool {
		if due := s.Blocked.Until; !want(en) || !due.IsZero() && !e.o.Now().Before(due) {
			return true
		}
		rows = append(rows, QueueRow{Item: en.Item.ID, Label: en.Item.Label, Workflow: en.Run, Step: en.Step,
			Lane: en.Item.Lane, Since: waitsSince(en), Why: s.Blocked.Text})
		return len(rows) < most
	})
	return rows
}

// offText says why a step that waits is out of the flow for an item; "" when it is
// not.
func (e *Engine) offText(id layout.ItemID, run string, plan *state.Definition, i int, status state.Status) string {
	step := &plan.Steps[i]
	c, listed := e.controls.current().Steps[refOf(run, layout.Name(step.Name))]
	if !listed || status != state.Waiting {
		return ""
	}
	_, why := c.Open(id, run, e.o.Now(), func(t *state.Trial) bool {
		v, err := e.store.Tip()
		return err == nil && e.trialStands(v, t, layout.Name(step.Name))
	})
	return why
}
