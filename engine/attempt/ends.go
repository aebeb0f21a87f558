package attempt

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"bagpipe/engine/control"
	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// backoff is the pause after the failures-th failure in a row of a step.
func (at *Attempts) backoff(s *state.Step, failures int) time.Duration {
	b := at.settings.Current().Settings.Backoff()
	if own := s.Backoff; own != nil && own.First > 0 {
		b.First = time.Duration(own.First)
		b.Most = max(b.Most, b.First)
	}
	if own := s.Backoff; own != nil && own.Most > 0 {
		b.Most = time.Duration(own.Most)
	}
	return b.Wait(failures, rand.Float64())
}

// begin commits the claim of a step that was taken from the queue: waiting becomes
// in-progress. The limits of the workspace are asked again in the edit: what other
// engines claimed since Take is in the index by then, so that of two engines one is
// first.
func (at *Attempts) begin(ctx context.Context, entry queue.Entry) (*folder.Attempt, error) {
	id, workflow, step := entry.Item.ID, entry.Run, entry.Step
	a := &folder.Attempt{Item: id, Workflow: workflow, Step: step, Claimed: at.ledger.Now()}
	_, err := at.ledger.Step(ctx, id, workflow, at.ledger.ByRobot(step), "", func(rec *ledger.Record) (state.Event, error) {
		if at.index.Loaded().Overtaken(entry) {
			return nil, &state.IllegalError{Event: "claim", Item: id, Workflow: workflow, Step: step, Reason: "a limit of the workspace holds it back: another engine was first"}
		}
		if err := at.checkOpen(rec, workflow, step); err != nil {
			return nil, err
		}
		a.Key = rec.Execution.NextKey(step, at.ledger.ID)
		return state.Claim{Workflow: workflow, Step: step, Attempt: a.Key, At: a.Claimed, Runner: at.ledger.Runner()}, nil
	}, at.control.ClaimControl(a))
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Complete ends an attempt well: completed, or skipped as the result says, with
// the manifest and the inventory it changed in the same commit. A stale attempt
// is refused (state.ErrStale).
func (at *Attempts) Complete(ctx context.Context, a *folder.Attempt, started time.Time, res steps.Result) error {
	end := state.Completed
	if res.Status == steps.Skipped {
		end = state.Skipped
	}
	_, err := at.ledger.Step(ctx, a.Item, a.Workflow, at.ledger.ByRobot(a.Step), res.Message, func(rec *ledger.Record) (state.Event, error) {
		from, to := at.control.EndTimes(rec, a, started)
		return state.End{Workflow: a.Workflow, Step: a.Step, Attempt: a.Key, State: end,
			Started: from, At: to, Message: ledger.Clip(ledger.Printable(res.Message), ledger.MaxMessage), Milestones: res.Milestones, Progress: a.Progress, Children: a.Children}, nil
	}, control.AlsoFiles(describe(res), at.control.EndControl(a, false)))
	return err
}

// describe changes manifest.json and inventory.json as a result says.
func describe(res steps.Result) func(*ledger.Record, map[string][]byte) error {
	if res.Inventory == nil && len(res.Metadata) == 0 {
		return nil
	}
	return func(rec *ledger.Record, files map[string][]byte) error {
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
		data, err := m.Encode(rec.ManifestJ)
		if err != nil {
			return err
		}
		files[dir+layout.ManifestJSON] = data
		return nil
	}
}

// Fail ends an attempt with the error err; milestones are reached all the same. A
// system failure that has retries left is tried again by itself, at the time the
// backoff says.
func (at *Attempts) Fail(ctx context.Context, a *folder.Attempt, started time.Time, err error, text string, milestones []layout.Name) error {
	kind := string(steps.KindOf(err))
	var unavailable *steps.Unavailable
	gone := errors.As(err, &unavailable)
	message := ledger.Clip(ledger.Printable(err.Error()), ledger.MaxMessage)
	_, cerr := at.ledger.Step(ctx, a.Item, a.Workflow, at.ledger.ByRobot(a.Step), message, func(rec *ledger.Record) (state.Event, error) {
		from, to := at.control.EndTimes(rec, a, started)
		end := state.End{Workflow: a.Workflow, Step: a.Step, Attempt: a.Key, State: state.Failed, Unavailable: gone, Kind: kind,
			Started: from, At: to, Message: message, Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage), Milestones: milestones, Progress: a.Progress, Children: a.Children}
		failures := rec.Execution.Failures(a.Workflow, a.Step) + 1
		if s := rec.Plan.Step(a.Step); s != nil && kind == state.SystemKind && failures <= s.Retries {
			end.RetryAt = at.ledger.Now().Add(at.backoff(s, failures))
		}
		return end, nil
	}, at.control.EndControl(a, gone))
	return cerr
}

// Defer ends an attempt whose robot asked to be called again later.
func (at *Attempts) Defer(ctx context.Context, a *folder.Attempt, started time.Time, later *steps.Later) error {
	after := later.After
	if after <= 0 {
		after = at.settings.Current().Settings.LaterPause()
	}
	_, err := at.ledger.Step(ctx, a.Item, a.Workflow, at.ledger.ByRobot(a.Step), later.Error(), func(*ledger.Record) (state.Event, error) {
		now := at.ledger.Now()
		return state.End{Workflow: a.Workflow, Step: a.Step, Attempt: a.Key, State: state.Deferred,
			Started: started, At: now, RetryAt: now.Add(after), Message: ledger.Clip(ledger.Printable(later.Error()), ledger.MaxMessage), Progress: a.Progress, Children: a.Children}, nil
	}, nil)
	return err
}

// abandon gives an attempt back that was claimed or begun but not ended: the
// step waits again, and the attempt is marked lost. It costs no retry.
func (at *Attempts) abandon(ctx context.Context, id layout.ItemID, workflow string, step layout.Name, key layout.AttemptKey, why string) error {
	intent, err := at.ledger.IntentKey()
	if err != nil {
		return err
	}
	_, err = at.ledger.Step(ctx, id, workflow, at.ledger.ByEngine(), why, func(*ledger.Record) (state.Event, error) {
		return state.Lost{Key: intent, Workflow: workflow, Step: step, Attempt: key, At: at.ledger.Now(), By: at.ledger.ByEngine().Agent}, nil
	}, nil)
	return err
}

// failInternally gives an attempt up and fails its workflow, for a fault of
// Bagpipe's own; no step is failed.
func (at *Attempts) failInternally(ctx context.Context, a *folder.Attempt, cause *InternalError) error {
	key, err := at.ledger.IntentKey()
	if err != nil {
		return err
	}
	lost, err := at.ledger.IntentKey()
	if err != nil {
		return err
	}
	text := ledger.Clip(ledger.Printable(cause.Error()), ledger.MaxMessage)
	_, err = at.ledger.Step(ctx, a.Item, a.Workflow, at.ledger.ByEngine(), text, func(*ledger.Record) (state.Event, error) {
		return state.Internal{Key: key, LostKey: lost, Workflow: a.Workflow, Step: a.Step, Attempt: a.Key,
			At: at.ledger.Now(), By: at.ledger.ByEngine().Agent, Text: text}, nil
	}, nil)
	return err
}

// notNeeded skips a step that the item does not need: it was not asked for, or its
// condition does not hold.
func (at *Attempts) notNeeded(ctx context.Context, id layout.ItemID, workflow string, step layout.Name, why string) error {
	_, err := at.ledger.Step(ctx, id, workflow, at.ledger.ByEngine(), why, func(rec *ledger.Record) (state.Event, error) {
		return state.Unneeded{Workflow: workflow, Step: step, Attempt: rec.Execution.NextKey(step, at.ledger.ID),
			At: at.ledger.Now(), By: at.ledger.ByEngine().Agent}, nil
	}, nil)
	return err
}
