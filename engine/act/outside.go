package act

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Outcome is what whoever works outside says of a step.
type Outcome struct {
	Status     state.Status // InProgress, Completed, Skipped, Failed, or Waiting: it is given back
	Note       string       // of a step in progress
	Elapsed    time.Duration
	Message    string
	Text       string // of a failure, at length
	Milestones []layout.Name
}

// Tell notes what the acting program says of a step that it works on, outside every engine.
// A step in progress is claimed for it, also a manual one, and ended by it alone; a failure is
// tried again as the step's retries say. Where the claim's engine has gone, the step waits
// again.
func (ac *Acts) Tell(ctx context.Context, ref ledger.StepRef, o Outcome) (state.Transition, error) {
	workflow, err := ac.workflowOf(ctx, ref)
	if err != nil {
		return state.Transition{}, err
	}
	if _, err := ac.freeOfDead(ctx, ref.Item, workflow, ref.Step); err != nil {
		return state.Transition{}, err
	}
	if _, err := ac.ledger.Seat.Engine(); err != nil { // the claim is this process's
		return state.Transition{}, err
	}
	ref.Workflow = workflow
	t := telling{ac, ref, o}
	claimed, err := t.claimed()
	switch {
	case err != nil:
		return state.Transition{}, err
	case o.Status == state.Waiting && !claimed:
		return state.Transition{}, t.illegal("give back", "is not in progress by this program")
	case o.Status == state.InProgress && claimed:
		return t.change(ctx, o.Note, t.note)
	case o.Status == state.InProgress:
		return t.claim(ctx)
	case !claimed && o.Status != state.Failed && o.Elapsed == 0:
		return ac.Decide(ctx, ref, o.Status, o.Message, o.Milestones...)
	case !claimed:
		if _, err := t.claim(ctx); err != nil {
			return state.Transition{}, err
		}
	}
	return t.change(ctx, o.Message, t.end)
}

// telling is one call of Tell.
type telling struct {
	*Acts
	ref ledger.StepRef
	o   Outcome
}

func (t telling) illegal(event, reason string) *state.IllegalError {
	return &state.IllegalError{Event: event, Item: t.ref.Item, Workflow: t.ref.Workflow, Step: t.ref.Step, Reason: reason}
}

// claimed reports whether the step is in progress by the acting program.
func (t telling) claimed() (bool, error) {
	_, rec, err := t.ledger.ReadTip(t.ref.Item, t.ref.Workflow)
	if err != nil {
		return false, err
	}
	_, _, err = t.held(rec)
	var illegal *state.IllegalError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &illegal) && illegal.Err == nil: // it is not in progress
		return false, nil
	}
	return false, err
}

// held finds the acting program's attempt that is in progress. The error wraps state.ErrStale
// where another's is.
func (t telling) held(rec *ledger.Record) (key layout.AttemptKey, a state.Attempt, err error) {
	_, s := rec.Execution.Find(t.ref.Workflow, t.ref.Step)
	if s == nil || s.Status != state.InProgress {
		return key, a, t.illegal("end", "is not in progress")
	}
	key, a, _ = s.Current()
	if key.Engine != t.ledger.ID || a.Runner != t.ledger.Site.Runner(t.who.Agent) {
		illegal := t.illegal("end", fmt.Sprintf("is in progress by another, attempt %s of %s", key, a.Runner))
		illegal.Err = state.ErrStale
		return key, a, illegal
	}
	return key, a, nil
}

func (t telling) claim(ctx context.Context) (state.Transition, error) {
	return t.ledger.Step(ctx, t.ref.Item, t.ref.Workflow, t.who, t.o.Note, func(rec *ledger.Record) (state.Event, error) {
		c := state.Claim{Workflow: t.ref.Workflow, Step: t.ref.Step, Attempt: rec.Execution.NextKey(t.ref.Step, t.ledger.ID), At: t.ledger.Now(), Runner: t.ledger.Site.Runner(t.who.Agent), Outside: true}
		if t.o.Note != "" {
			c.Progress = t.progress()
		}
		return c, nil
	}, nil)
}

func (t telling) progress() *state.Progress {
	const most = 200 // bytes
	return &state.Progress{At: t.ledger.Now(), Note: ledger.OneLine(t.o.Note, most), Percent: -1}
}

// change makes an event happen to the acting program's attempt.
func (t telling) change(ctx context.Context, text string, event func(layout.AttemptKey, state.Attempt, *ledger.Record) state.Event) (state.Transition, error) {
	return t.ledger.Step(ctx, t.ref.Item, t.ref.Workflow, t.who, text, func(rec *ledger.Record) (state.Event, error) {
		key, a, err := t.held(rec)
		if err != nil {
			return nil, err
		}
		return event(key, a, rec), nil
	}, nil)
}

func (t telling) note(key layout.AttemptKey, _ state.Attempt, _ *ledger.Record) state.Event {
	return state.Note{Workflow: t.ref.Workflow, Step: t.ref.Step, Attempt: key, Progress: *t.progress()}
}

func (t telling) end(key layout.AttemptKey, a state.Attempt, rec *ledger.Record) state.Event {
	now, o := t.ledger.Now(), t.o
	end := state.End{Workflow: t.ref.Workflow, Step: t.ref.Step, Attempt: key, State: o.Status, Started: a.Claimed, At: now,
		Message: ledger.Clip(ledger.Printable(o.Message), ledger.MaxMessage), Text: ledger.Clip(ledger.Printable(o.Text), ledger.MaxMessage), Milestones: o.Milestones}
	if o.Elapsed > 0 {
		end.Started = now.Add(-o.Elapsed)
	}
	if o.Status == state.Waiting {
		end.State, end.RetryAt = state.Deferred, now
	}
	if o.Status == state.Failed {
		end.Kind = state.SystemKind
		failures := rec.Execution.Failures(t.ref.Workflow, t.ref.Step) + 1
		if s := t.settings.Deployed(rec.Plan.Name, rec.Plan.Step(t.ref.Step)); s != nil && failures <= s.Retries {
			end.RetryAt = now.Add(t.settings.Current().Settings.BackoffOf(s).Wait(failures, rand.Float64()))
		}
	}
	return end
}
