package attempt

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"bagpipe/engine/control"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// backoff is the pause after the failures-th failure in a row of a step.
func (a *Attempts) backoff(s *state.Step, failures int) time.Duration {
	return a.settings.Current().Settings.BackoffOf(s).Wait(failures, rand.Float64())
}

// begin commits the claim of a step that was taken from the queue: waiting becomes
// in-progress. The limits of the workspace are asked again in the edit: what other
// engines claimed since Take is in the index by then, so that of two engines one is
// first. starts says that the robot is called now.
func (a *Attempts) begin(ctx context.Context, entry queue.Entry, by Worker, starts bool) (*claimed, error) {
	id, workflow, step := entry.Item.ID, entry.Run, entry.Step
	c := &claimed{AttemptRef: layout.AttemptRef{Item: id, Workflow: workflow, Step: step}, by: by, at: a.ledger.Now()}
	_, err := a.ledger.Step(ctx, id, workflow, c.robot(a.ledger), "", func(rec *ledger.Record) (state.Event, error) {
		if a.index.Loaded().Overtaken(entry) {
			return nil, &state.IllegalError{Event: "claim", Item: id, Workflow: workflow, Step: step, Reason: "a limit of the workspace holds it back: another engine was first"}
		}
		if err := a.checkOpen(rec, workflow, step); err != nil {
			return nil, err
		}
		if on := onWorker(rec.Manifest); by.Name != "" && on != "" && on != by.Name { // it was given to another after it was offered
			return nil, &state.IllegalError{Event: "claim", Item: id, Workflow: workflow, Step: step, Reason: "it is for worker " + string(on)}
		}
		c.Key = rec.Execution.NextKey(step, by.Engine)
		return state.Claim{Workflow: workflow, Step: step, Attempt: c.Key, At: c.at, Runner: by.Runner, Version: by.Version, Unstarted: !starts}, nil
	}, a.control.ClaimControl(c.AttemptRef))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// complete ends an attempt well: completed, or skipped as the result says, with
// the manifest and the inventory it changed in the same commit. A stale attempt
// is refused (state.ErrStale).
//
// next, unless it is nil, is claimed behind it, if it can be.
func (a *Attempts) complete(ctx context.Context, c *claimed, res steps.Result, next *Work) error {
	c.Chosen = res.Choose
	end := state.Completed
	if res.Status == steps.Skipped {
		end = state.Skipped
	}
	begin := a.ledger.Clock()
	_, err := a.ledger.StepThen(ctx, c.Item, c.Workflow, c.robot(a.ledger), res.Message, func(rec *ledger.Record) (state.Event, error) {
		if next != nil {
			next.attempt = nil
		}
		c.Content = rec.Manifest.Source.Bare() && slices.ContainsFunc(res.Outputs, func(o steps.Output) bool { return o.To == layout.ContentDir })
		from, to := a.control.EndTimes(rec, c.AttemptRef, c.started)
		return state.End{Workflow: c.Workflow, Step: c.Step, Attempt: c.Key, State: end,
			Started: from, At: to, Message: ledger.Clip(ledger.Printable(res.Message), ledger.MaxMessage), Milestones: res.Milestones, Progress: c.progress, Yield: c.Yield}, nil
	}, control.AlsoFiles(describe(c, res), qualities{a.rooms}.note(c, true, ""), a.recordDeposits(res), a.control.EndControl(c.AttemptRef, false)), follows(a, next))
	if next != nil {
		if err != nil {
			next.attempt = nil
		} else if next.attempt != nil {
			next.attempt.claiming = a.ledger.Clock().Sub(begin)
		}
	}
	return err
}

// follows is what a step that ended well brings about in its workflow: steps that nobody asked
// for are skipped, and next, unless it is nil, is claimed.
func follows(a *Attempts, next *Work) func(*ledger.Record, string) *ledger.Follow {
	skips := unasked(a)
	return func(rec *ledger.Record, workflow string) *ledger.Follow {
		f := skips(rec, workflow)
		if f == nil && next != nil {
			f = claims(next, rec)
		}
		return f
	}
}

// describe changes manifest.json and inventory.json as a result says.
func describe(c *claimed, res steps.Result) func(*ledger.Record, map[string][]byte) error {
	if res.Inventory == nil && len(res.Metadata) == 0 {
		return nil
	}
	return func(rec *ledger.Record, files map[string][]byte) error {
		if err := c.given.checkMetadata(rec, c.AttemptRef, res.Metadata); err != nil {
			return err
		}
		m := rec.Manifest
		dir := layout.ItemDir(m.Item) + "/"
		if res.Inventory != nil {
			data, err := res.Inventory.Encode()
			if err != nil {
				return err
			}
			files[dir+layout.InventoryJSON] = data
			m.Inventory = &layout.InventorySummary{Digest: ledger.DigestOf(data), Files: len(res.Inventory.Files), Bytes: res.Inventory.Bytes()}
		}
		m.Metadata = ledger.Merge(m.Metadata, res.Metadata)
		data, err := m.Encode(rec.Committed.Manifest)
		if err != nil {
			return err
		}
		files[dir+layout.ManifestJSON] = data
		return nil
	}
}

// fail ends an attempt with the error err; milestones are reached all the same. A
// system failure that has retries left is tried again by itself, at the time the
// backoff says.
func (a *Attempts) fail(ctx context.Context, c *claimed, err error, text string, milestones []layout.Name) error {
	kind := string(steps.KindOf(err))
	var unavailable *steps.Unavailable
	gone := errors.As(err, &unavailable)
	var cancelled *cancelledError
	again := !errors.As(err, &cancelled)
	message := ledger.Clip(ledger.Printable(err.Error()), ledger.MaxMessage)
	_, cerr := a.ledger.Step(ctx, c.Item, c.Workflow, c.robot(a.ledger), message, func(rec *ledger.Record) (state.Event, error) {
		from, to := a.control.EndTimes(rec, c.AttemptRef, c.started)
		end := state.End{Workflow: c.Workflow, Step: c.Step, Attempt: c.Key, State: state.Failed, Unavailable: gone, Kind: kind,
			Started: from, At: to, Message: message, Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage), Milestones: milestones, Progress: c.progress, Yield: c.Yield}
		failures := rec.Execution.Failures(c.Workflow, c.Step) + 1
		if s := a.settings.Deployed(rec.Plan.Name, rec.Plan.Step(c.Step)); s != nil && again && !s.OnBatchComplete && kind == state.SystemKind {
			if retries, pause := retrying(a, s, err, failures); failures <= retries {
				end.RetryAt = a.ledger.Now().Add(pause)
			}
		}
		return end, nil
	}, control.AlsoFiles(qualities{a.rooms}.note(c, false, contentText(err)), a.control.EndControl(c.AttemptRef, gone)))
	return cerr
}

// deferUntil ends an attempt whose robot asked for a later call.
func (a *Attempts) deferUntil(ctx context.Context, c *claimed, later *steps.Later) error {
	after := later.After
	if after <= 0 {
		after = a.settings.Current().Settings.LaterPause()
	}
	_, err := a.ledger.Step(ctx, c.Item, c.Workflow, c.robot(a.ledger), later.Error(), func(*ledger.Record) (state.Event, error) {
		now := a.ledger.Now()
		return state.End{Workflow: c.Workflow, Step: c.Step, Attempt: c.Key, State: state.Deferred,
			Started: c.started, At: now, RetryAt: now.Add(after), Message: ledger.Clip(ledger.Printable(later.Error()), ledger.MaxMessage), Progress: c.progress, Yield: c.Yield}, nil
	}, nil)
	return err
}

// failInternally gives an attempt up and fails its workflow, for a fault of
// Bagpipe's own; no step is failed.
func (a *Attempts) failInternally(ctx context.Context, c *claimed, cause *InternalError) error {
	key, err := a.ledger.IntentKey()
	if err != nil {
		return err
	}
	lost, err := a.ledger.IntentKey()
	if err != nil {
		return err
	}
	text := ledger.Clip(ledger.Printable(cause.Error()), ledger.MaxMessage)
	_, err = a.ledger.Step(ctx, c.Item, c.Workflow, a.ledger.ByEngine(), text, func(*ledger.Record) (state.Event, error) {
		return state.Internal{Key: key, LostKey: lost, Workflow: c.Workflow, Step: c.Step, Attempt: c.Key,
			At: a.ledger.Now(), By: a.ledger.ByEngine().Agent, Text: text}, nil
	}, nil)
	return err
}

// notNeeded skips a step that the item does not need: it was not asked for, or its
// condition does not hold.
func (a *Attempts) notNeeded(ctx context.Context, id layout.ItemID, workflow string, step layout.Name, why string) error {
	_, err := a.ledger.Step(ctx, id, workflow, a.ledger.ByEngine(), why, func(rec *ledger.Record) (state.Event, error) {
		return unneeded(a.ledger, rec, workflow, step), nil
	}, nil)
	return err
}

func unneeded(l *ledger.Ledger, rec *ledger.Record, workflow string, step layout.Name) state.Event {
	return state.Unneeded{Workflow: workflow, Step: step, Attempt: rec.Execution.NextKey(step, l.ID), At: l.Now(), By: l.ByEngine().Agent}
}

// unasked is the skip, as notNeeded makes it, of the first step of the workflow that could start after its
// last transition and that nobody asked for; nil: there is none. A step that more than the item's
// own record has a say in is left to the queue: other items, a control, a run for some steps alone.
func unasked(a *Attempts) func(*ledger.Record, string) *ledger.Follow {
	return func(rec *ledger.Record, workflow string) *ledger.Follow {
		x, w := rec.Execution, rec.Execution.Workflows[workflow]
		for i := range rec.Plan.Steps {
			step := layout.Name(rec.Plan.Steps[i].Name)
			if _, skipped := w.Skip[step]; !skipped || !rec.Plan.Steps[i].OnRequest || w.Steps[step].Status != state.Waiting {
				continue
			}
			if x.Blocked(workflow, rec.Plan, i, a.ledger.Now()) != nil {
				continue
			}
			if !alone(a, rec, workflow, step) {
				return nil
			}
			return &ledger.Follow{Who: a.ledger.ByEngine(), Text: x.Unneeded(workflow, rec.Plan, i), Event: unneeded(a.ledger, rec, workflow, step)}
		}
		return nil
	}
}

// alone reports whether the item's own record has all the say in a step.
func alone(a *Attempts, rec *ledger.Record, workflow string, step layout.Name) bool {
	_, controlled := a.control.Current().Steps[control.RefOf(workflow, step)]
	index := a.index.Loaded()
	return !controlled && index != nil && !index.Narrowed() && rec.Manifest.Batch == "" && rec.Manifest.Parent == nil && !rec.Execution.Workflows[workflow].Multiplied()
}

// Returned is how an attempt ends that nobody could finish; it costs no retry.
type Returned struct{ Why string }

func (r *Returned) Error() string { return r.Why }
