package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// NotDone is an item that was named for a run, and why the run did not do what
// was asked for it.
type NotDone struct {
	Item   layout.ItemID `json:"item"`
	Label  string        `json:"label"`
	Step   string        `json:"step,omitempty"` // WORKFLOW.N/STEP
	Why    string        `json:"why"`
	Remedy fault.Remedy  `json:"-"`
}

// selection is what a run works on: everything, some items, or one queue.
type selection struct {
	e           *Engine
	items       []layout.ItemID // all that is worked on; none: everything
	step        string          // STEP or WORKFLOW/STEP of those items; "": all their steps
	which       string          // the queue that is worked on; "": everything
	retryFailed bool
	notify      func(note string)

	queue *queue.Named // by which; nil: everything

	mu     sync.Mutex              // guards handed
	handed map[ledger.StepRef]bool // of a queue with a limit
}

// injected tells whether the run is for the items, or the queue, it was given alone.
func (s *selection) injected() bool { return len(s.items) > 0 || s.which != "" }

// wants tells whether the run may work on a step.
func (s *selection) wants(item layout.ItemID, workflow string, step layout.Name) bool {
	if len(s.items) == 0 {
		return true
	}
	if !slices.Contains(s.items, item) {
		return false
	}
	flow, name, named := strings.Cut(s.step, "/")
	if !named {
		flow, name = "", s.step
	}
	base, _ := state.Instance(workflow)
	return (name == "" || name == string(step)) && (flow == "" || flow == workflow || flow == base)
}

// narrow keeps a run to the items it was given, and lets failed steps be tried
// again if it was told to.
func (s *selection) narrow(ctx context.Context) error {
	if err := s.pointAt(s.which); err != nil {
		return err
	}
	if len(s.items) > 0 {
		if err := s.known(); err != nil {
			return err
		}
		s.e.Index.Loaded().Only(func(en queue.Entry) (bool, time.Time) { return s.wants(en.Item.ID, en.Run, en.Step), time.Time{} })
	}
	if !s.retryFailed {
		return nil
	}
	for it := range s.e.Index.Loaded().With(queue.Failed) {
		for run, n := range it.Steps() {
			step := layout.Name(run.Plan.Steps[n].Name)
			active := run.Status == state.Failed || run.Status == state.InProgress
			// A queue's own conditions are not asked: they are of what is ready.
			if s.queue != nil && !s.queue.Wants(queue.StepID{Workflow: run.Plan.Name, Step: step}) {
				continue
			}
			if !active || run.Steps[n].Status != state.Failed || !s.wants(it.ID, run.Name, step) {
				continue
			}
			_, err := s.e.Act.Retry(ctx, ledger.StepRef{Item: it.ID, Workflow: run.Name, Step: step}, "retried at the start of a run, with what else had failed")
			if err != nil && !ledger.IsRefused(err) {
				return fmt.Errorf("retry %s of item %s: %w", step, it.ID.Short(), err)
			}
		}
	}
	return nil
}

// pointAt keeps a run to a queue.
func (s *selection) pointAt(name string) error {
	if name == "" {
		return nil
	}
	q, err := s.e.Ask.AskedQueue(name)
	if err != nil {
		return err
	}
	s.queue = q
	if len(q.Order) > 0 {
		s.e.Index.Loaded().SetOrder(s.e.Ask.OrderOf(q))
	}
	s.e.Index.Loaded().Only(func(en queue.Entry) (bool, time.Time) {
		if !q.Wants(en.ID()) || s.beyond(en) {
			return false, time.Time{}
		}
		a, err := s.e.Ask.Asker(nil)
		if err != nil {
			return false, s.e.Ledger.Now().Add(time.Second) // asked again
		}
		return q.Condition().Holds(s.e.Ask.ValuesOf(a.R, en.Item, a.Facets), a.Now)
	})
	return nil
}

// Of a queue with a limit a run does so many steps: those that the list shows when
// they are taken. One that is tried again by itself counts once.

// beyond tells whether the queue's limit lets a step through no more.
func (s *selection) beyond(en queue.Entry) bool {
	if s.queue == nil || s.queue.Limit == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.handed) >= s.queue.Limit && !s.handed[handedOf(en)]
}

// hand counts a step that was handed out.
func (s *selection) hand(en queue.Entry) {
	if s.queue == nil || s.queue.Limit == 0 {
		return
	}
	s.mu.Lock()
	if s.handed == nil {
		s.handed = map[ledger.StepRef]bool{}
	}
	s.handed[handedOf(en)] = true
	full := len(s.handed) == s.queue.Limit
	s.mu.Unlock()
	if full {
		s.notify(fmt.Sprintf("queue %s: the last of the %d steps that limit: allows a run was taken", s.queue.Name, s.queue.Limit))
	}
}

// spent tells whether the queue's limit lets nothing new through, so that also a run
// that watches ends with what it has begun.
func (s *selection) spent() bool {
	if s.queue == nil || s.queue.Limit == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.handed) >= s.queue.Limit
}

func handedOf(en queue.Entry) ledger.StepRef {
	return ledger.StepRef{Item: en.Item.ID, Workflow: en.Run, Step: en.Step}
}

// known refuses a step that none of the items has.
func (s *selection) known() error {
	for _, id := range s.items {
		it := s.e.Index.Loaded().Item(id)
		if it == nil {
			return ledger.Missing(s.e.Ledger, id)
		}
		if it.Broken == "" && s.step != "" && len(s.asked(it)) == 0 {
			return fault.New(fault.NotFound, fmt.Sprintf("item %s has no step %s", id.Short(), s.step), fault.Remedy{Verb: fault.Show, Item: id})
		}
	}
	return nil
}

// asked lists the steps of an item that the run may work on.
func (s *selection) asked(it *queue.Item) (entries []queue.Entry) {
	for run, n := range it.Steps() {
		if step := layout.Name(run.Plan.Steps[n].Name); s.wants(it.ID, run.Name, step) {
			entries = append(entries, queue.Entry{Item: it, Run: run.Name, Step: step, N: n})
		}
	}
	return entries
}

// notDone says, of the items the run was given, why the step it was given is still
// open; a run for whole items tells what waits in its summary.
func (s *selection) notDone() []NotDone {
	out := []NotDone{}
	for _, id := range s.items {
		it := s.e.Index.Loaded().Item(id)
		if it == nil {
			continue
		}
		if it.Broken != "" {
			out = append(out, NotDone{Item: id, Label: it.Label, Why: it.Broken})
			continue
		}
		if s.step == "" {
			continue
		}
		for _, en := range s.asked(it) {
			st := stepOf(it, en)
			step, why := en.Run+"/"+string(en.Step), ask.Reason(st)
			var remedy fault.Remedy
			switch {
			case st.Status == state.Completed, st.Status == state.Skipped:
				continue
			case st.Status == state.Failed && st.Current.Engine == s.e.Ledger.ID:
				continue // told of as failed in this run
			case st.Status == state.Failed:
				why, remedy = "failed earlier: "+why, fault.Remedy{Verb: fault.Retry, Item: id, Run: en.Run, Step: en.Step}
			}
			out = append(out, NotDone{Item: id, Label: it.Label, Step: step, Why: why, Remedy: remedy})
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
