package ask

import (
	"slices"
	"time"

	"bagpipe/engine/control"
	"bagpipe/engine/ledger"
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
	Ref     state.Ref           `json:"-"`
}

// StepControls lists the steps that are listed and wanted.
func (qu *QueueLists) StepControls(want func(StepControl) bool) []StepControl {
	out := []StepControl{}
	for ref, c := range qu.control.Current().Steps {
		s := StepControl{Step: ref.String(), Status: c.Status, At: c.At, By: ledger.Printable(c.By), Text: ledger.Printable(c.Text), Until: c.Until, Ref: ref}
		if c.Trial != nil {
			s.Trial = c.Trial.Item
		}
		if want(s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b StepControl) int { return control.CompareRefs(a.Ref, b.Ref) })
	if len(out) == 0 {
		return out
	}
	waiting := map[state.Ref]int{}
	qu.eachOff(func(en queue.Entry, _ *queue.Step) bool {
		waiting[control.RefOf(en.Run, en.Step)]++
		return true
	})
	for i := range out {
		out[i].Waiting = waiting[out[i].Ref]
	}
	return out
}

// eachOff visits the steps that only wait as they are disabled, until visit has seen
// enough.
func (qu *QueueLists) eachOff(visit func(queue.Entry, *queue.Step) bool) {
	for it := range qu.index.Loaded().Off() {
		for run, i := range it.Steps() {
			if !run.Steps[i].Off() || it.Held || it.Broken != "" {
				continue
			}
			if !visit(queue.Entry{Item: it, Run: run.Name, Step: layout.Name(run.Plan.Steps[i].Name), N: i}, &run.Steps[i]) {
				return
			}
		}
	}
}

// offRows are the lines of a queue for steps that only wait as they are disabled,
// but for those whose trial is due, which are ready: as many as are wanted.
func (qu *QueueLists) offRows(most int, want func(queue.Entry) bool) (rows []QueueRow) {
	if most <= 0 {
		return nil
	}
	qu.eachOff(func(en queue.Entry, s *queue.Step) bool {
		if due := s.Blocked.Until; !want(en) || !due.IsZero() && !qu.ledger.Now().Before(due) {
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
func (de *Details) offText(id layout.ItemID, run string, plan *state.Definition, i int, status state.Status) string {
	step := &plan.Steps[i]
	c, listed := de.control.Current().Steps[control.RefOf(run, layout.Name(step.Name))]
	if !listed || status != state.Waiting {
		return ""
	}
	_, why := c.Open(id, run, de.ledger.Now(), func(t *state.Trial) bool {
		v, err := de.ledger.Store.Tip()
		return err == nil && de.control.TrialStands(v, t, layout.Name(step.Name))
	})
	return why
}
