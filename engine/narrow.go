package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// NotDone is an item that was named for a run, and why the run did not do what
// was asked for it.
type NotDone struct {
	Item  layout.ItemID `json:"item"`
	Label string        `json:"label"`
	Step  string        `json:"step,omitempty"` // WORKFLOW.N/STEP
	Why   string        `json:"why"`
}

// injected tells whether the run is for the items, or the queue, it was given alone.
func (r *run) injected() bool { return len(r.o.Items) > 0 || r.o.Queue != "" }

// wants tells whether the run may work on a step.
func (r *run) wants(item layout.ItemID, workflow string, step layout.Name) bool {
	if len(r.o.Items) == 0 {
		return true
	}
	if !slices.Contains(r.o.Items, item) {
		return false
	}
	flow, name, named := strings.Cut(r.o.Step, "/")
	if !named {
		flow, name = "", r.o.Step
	}
	base, _ := state.Instance(workflow)
	return (name == "" || name == string(step)) && (flow == "" || flow == workflow || flow == base)
}

// narrow keeps a run to the items it was given, and lets failed steps be tried
// again if it was told to.
func (r *run) narrow(ctx context.Context) error {
	if err := r.pointAt(r.o.Queue); err != nil {
		return err
	}
	if len(r.o.Items) > 0 {
		if err := r.known(); err != nil {
			return err
		}
		r.e.Index.Loaded().Only(func(en queue.Entry) (bool, time.Time) { return r.wants(en.Item.ID, en.Run, en.Step), time.Time{} })
	}
	if !r.o.RetryFailed {
		return nil
	}
	for it := range r.e.Index.Loaded().With(queue.Failed) {
		for i := range it.Runs {
			run := &it.Runs[i]
			for n := range run.Steps {
				step := layout.Name(run.Plan.Steps[n].Name)
				active := run.Status == state.Failed || run.Status == state.InProgress
				// A queue's own conditions are not asked: they are of what is ready.
				if r.queue != nil && !r.queue.Wants(queue.StepID{Workflow: run.Plan.Name, Step: step}) {
					continue
				}
				if !active || run.Steps[n].Status != state.Failed || !r.wants(it.ID, run.Name, step) {
					continue
				}
				_, err := r.e.Act.Retry(ctx, ledger.StepRef{it.ID, run.Name, step}, "retried at the start of a run, with what else had failed")
				if err != nil && !ledger.IsRefused(err) {
					return fmt.Errorf("retry %s of item %s: %w", step, it.ID.Short(), err)
				}
			}
		}
	}
	return nil
}

// pointAt keeps a run to a queue.
func (r *run) pointAt(name string) error {
	if name == "" {
		return nil
	}
	q, err := r.e.Ask.AskedQueue(name)
	if err != nil {
		return err
	}
	r.queue = q
	if len(q.Order) > 0 {
		r.e.Index.Loaded().SetOrder(r.e.Ask.OrderOf(q))
	}
	r.e.Index.Loaded().Only(func(en queue.Entry) (bool, time.Time) {
		if !q.Wants(en.ID()) || r.beyond(en) {
			return false, time.Time{}
		}
		a, err := r.e.Ask.Asker(nil)
		if err != nil {
			return false, r.e.Ledger.Now().Add(time.Second) // asked again
		}
		return q.Condition().Holds(r.e.Ask.ValuesOf(a.R, en.Item, a.Facets), a.Now)
	})
	return nil
}

// Of a queue with a limit a run does so many steps: those that the list shows when
// they are taken. One that is tried again by itself counts once.

// beyond tells whether the queue's limit lets a step through no more.
func (r *run) beyond(en queue.Entry) bool {
	if r.queue == nil || r.queue.Limit == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.handed) >= r.queue.Limit && !r.handed[handedOf(en)]
}

// hand counts a step that was handed out.
func (r *run) hand(en queue.Entry) {
	if r.queue == nil || r.queue.Limit == 0 {
		return
	}
	r.mu.Lock()
	if r.handed == nil {
		r.handed = map[ledger.StepRef]bool{}
	}
	r.handed[handedOf(en)] = true
	full := len(r.handed) == r.queue.Limit
	r.mu.Unlock()
	if full {
		r.tell(fmt.Sprintf("queue %s: the last of the %d steps that limit: allows a run was taken", r.queue.Name, r.queue.Limit))
	}
}

// spent tells whether the queue's limit lets nothing new through, so that also a run
// that watches ends with what it has begun.
func (r *run) spent() bool {
	if r.queue == nil || r.queue.Limit == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.handed) >= r.queue.Limit
}

func handedOf(en queue.Entry) ledger.StepRef { return ledger.StepRef{en.Item.ID, en.Run, en.Step} }

// known refuses a step that none of the items has.
func (r *run) known() error {
	for _, id := range r.o.Items {
		it := r.e.Index.Loaded().Item(id)
		if it == nil {
			return &ledger.NoItemError{Ref: string(id)}
		}
		if it.Broken == "" && r.o.Step != "" && len(r.asked(it)) == 0 {
			return fmt.Errorf("item %s has no step %s; bagpipe show %s lists them", id.Short(), r.o.Step, id.Short())
		}
	}
	return nil
}

// asked lists the steps of an item that the run may work on.
func (r *run) asked(it *queue.Item) (entries []queue.Entry) {
	for i := range it.Runs {
		run := &it.Runs[i]
		for n := range run.Steps {
			if step := layout.Name(run.Plan.Steps[n].Name); r.wants(it.ID, run.Name, step) {
				entries = append(entries, queue.Entry{Item: it, Run: run.Name, Step: step, N: n})
			}
		}
	}
	return entries
}

// notDone says, of the items the run was given, why the step it was given is still
// open; a run for whole items tells what waits in its summary.
func (r *run) notDone() []NotDone {
	out := []NotDone{}
	for _, id := range r.o.Items {
		it := r.e.Index.Loaded().Item(id)
		if it == nil {
			continue
		}
		if it.Broken != "" {
			out = append(out, NotDone{Item: id, Label: it.Label, Why: it.Broken})
			continue
		}
		if r.o.Step == "" {
			continue
		}
		for _, en := range r.asked(it) {
			s := stepOf(it, en)
			step, why := en.Run+"/"+string(en.Step), r.e.Ask.Reason(s)
			switch {
			case s.Status == state.Completed, s.Status == state.Skipped:
				continue
			case s.Status == state.Failed && s.Current.Engine == r.e.Ledger.ID:
				continue // told of as failed in this run
			case s.Status == state.Failed:
				why = fmt.Sprintf("failed earlier: %s; let it be tried again with: bagpipe step retry %s %s", why, id.Short(), step)
			}
			out = append(out, NotDone{Item: id, Label: it.Label, Step: step, Why: why})
		}
	}
	return out
}

func stepOf(it *queue.Item, en queue.Entry) *queue.Step {
	for i := range it.Runs {
		if it.Runs[i].Name == en.Run {
			return &it.Runs[i].Steps[en.N]
		}
	}
	return &queue.Step{}
}
