package act

import (
	"context"
	"fmt"
	"slices"
	"time"

	"bagpipe/engine/control"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// enabledAt is when a step is enabled: now, or at the latest end of it that is recorded.
func enabledAt(items *queue.Index, ref state.Ref, now time.Time) time.Time {
	at := now
	for it := range items.With(queue.Ending) {
		for run, i := range it.Steps() {
			if control.RefOf(run.Name, layout.Name(run.Plan.Steps[i].Name)) != ref {
				continue
			}
			for _, end := range run.Steps[i].Ends {
				if end.At.After(at) {
					at = end.At
				}
			}
		}
	}
	return at
}

// SetStep disables or enables a step of a workflow for all items, as the acting
// person. It answers false when the step stands so already. Load must have been
// called.
func (ac *Acts) SetStep(ctx context.Context, ref state.Ref, status state.ControlStatus, text string) (changed bool, err error) {
	if err := ac.checkControllable(ref); err != nil {
		return false, err
	}
	at := ac.ledger.Now()
	if status == state.StepEnabled {
		at = enabledAt(ac.index.Loaded(), ref, at)
	}
	_, err = ac.ledger.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		c, err := ac.control.ControlsAt(r)
		if err != nil {
			return nil, err
		}
		to := state.Control{Status: status, At: at, By: ac.who.Agent, Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage)}
		if changed = c.Set(ref, to); !changed {
			return nil, nil
		}
		return ac.control.ControlChange(c, ref, to, ac.who)
	})
	return changed, err
}

// checkControllable refuses what no workflow has, and what a person does.
func (ac *Acts) checkControllable(ref state.Ref) error {
	if _, listed := ac.control.Current().Steps[ref]; listed {
		return nil
	}
	manual := false
	for _, p := range ac.index.PlansInUse() {
		if p.Name != ref.Workflow {
			continue
		}
		i := slices.IndexFunc(p.Steps, func(s state.Step) bool { return s.Name == string(ref.Step) })
		if i > 0 && !p.Steps[i].Manual {
			return nil
		}
		manual = manual || i >= 0
	}
	if manual {
		return fmt.Errorf("%s is not done by a robot; there is nothing to disable", ref)
	}
	if err := ac.index.CheckStepNames(ref.Workflow, string(ref.Step)); err != nil {
		return err
	}
	return fmt.Errorf("%s: expected a workflow's name, not one run of it", ref)
}
