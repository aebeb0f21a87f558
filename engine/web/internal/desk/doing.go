package desk

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"bagpipe/engine/act"
	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/engine/web/access"
	"bagpipe/layout"
)

// Wanted is an act on one item, as pages and calls have it.
type Wanted struct {
	Act        string // complete, skip, fail, retry, reset, cancel, hold, release, start, deactivate, activate or migrate
	Workflow   string
	Step       layout.Name
	Message    string
	Milestones []layout.Name
	After      bool // reset: also the steps that need it

	Seen    string            // the item's stamp, as it was looked at; "": was not
	Status  state.Status      // reset: as the step was seen; "": was not looked at
	Attempt layout.AttemptKey // likewise
}

// Check refuses an act that does not say all that it needs to.
func (w *Wanted) Check() error {
	if w.Act == "fail" && strings.TrimSpace(w.Message) == "" {
		return fault.New(fault.Invalid, "To refuse needs a reason: say what the producer must mend.")
	}
	return nil
}

// Did is what became of it.
type Did struct {
	Item     layout.ItemID `json:"item"`
	Workflow string        `json:"workflow,omitempty"`
	Step     layout.Name   `json:"step,omitempty"`
	From     state.Status  `json:"from,omitempty"`
	To       state.Status  `json:"to,omitempty"`
}

// Do acts on an item, in the name of who asks.
func (d *Desk) Do(ctx context.Context, id layout.ItemID, w Wanted) (Did, error) {
	needs := access.Operator
	if w.Act == "migrate" {
		needs = access.Admin
	}
	acts, err := d.Acts(ctx, needs)
	if err != nil {
		return Did{}, err
	}
	if err := cmp.Or(d.Reach(ctx, id), w.Check()); err != nil {
		return Did{}, err
	}
	if w.Seen != "" {
		ctx = ledger.Expecting(ctx, id, w.Seen)
	}
	ref := ledger.StepRef{Item: id, Workflow: w.Workflow, Step: w.Step}
	onStep := w.Act == "complete" || w.Act == "skip" || w.Act == "fail" || w.Act == "retry" || w.Act == "reset"
	if onStep && w.Step == "" {
		return Did{}, fault.New(fault.Invalid, w.Act+": expected a step")
	}
	var tr state.Transition
	switch w.Act {
	case "complete":
		tr, err = acts.Decide(ctx, ref, state.Completed, w.Message, w.Milestones...)
	case "skip":
		tr, err = acts.Decide(ctx, ref, state.Skipped, w.Message, w.Milestones...)
	case "fail":
		tr, err = acts.Decide(ctx, ref, state.Failed, w.Message, w.Milestones...)
	case "retry":
		tr, err = acts.Retry(ctx, ref, w.Message)
	case "reset":
		tr, err = acts.Reset(ctx, act.SeenStep{StepRef: ref, Status: w.Status, Attempt: w.Attempt}, w.After, w.Message)
	case "cancel":
		var all []state.Transition
		if all, err = acts.Cancel(ctx, ref, w.Message); len(all) > 0 {
			tr = all[0]
		}
	case "hold":
		err = acts.Hold(ctx, id, w.Message)
	case "release":
		err = acts.Release(ctx, id, w.Message)
	default:
		return d.doFlow(ctx, acts, id, w)
	}
	return Did{id, tr.Workflow, tr.Step, tr.From, tr.To}, err
}

// doFlow acts on a workflow of an item.
func (d *Desk) doFlow(ctx context.Context, acts *act.Acts, id layout.ItemID, w Wanted) (Did, error) {
	var tr state.Transition
	var err error
	switch {
	case w.Workflow == "" && w.Act != "":
		return Did{}, fault.New(fault.Invalid, w.Act+": expected a workflow")
	case w.Act == "start":
		name, err := acts.Start(ctx, id, w.Workflow, time.Time{})
		return Did{Item: id, Workflow: name, To: state.InProgress}, err
	case w.Act == "deactivate":
		tr, err = acts.Deactivate(ctx, id, w.Workflow, w.Message)
	case w.Act == "activate":
		tr, err = acts.Activate(ctx, id, w.Workflow, w.Message)
	case w.Act == "migrate":
		tr, err = acts.Migrate(ctx, id, w.Workflow, w.Message)
	default:
		return Did{}, fault.New(fault.Invalid, fmt.Sprintf("act %q: expected complete, skip, fail, retry, reset, cancel, hold, release, start, deactivate, activate or migrate", w.Act))
	}
	return Did{id, tr.Workflow, tr.Step, tr.From, tr.To}, err
}
