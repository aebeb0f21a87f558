package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// NoItemError is an item that is not in the workspace.
type NoItemError struct{ Ref string }

func (e *NoItemError) Error() string {
	return fmt.Sprintf("no item %q: give an identifier, the beginning of one, or a label; bagpipe items lists them", e.Ref)
}

// record is one item as it stands at the tip, ready to be changed.
type record struct {
	execution  *state.Execution
	executionJ []byte // as committed
	manifest   layout.Manifest
	manifestJ  []byte
	plan       *state.Definition // of the workflow instance asked for; nil without one
	at         gitstore.Reader   // where it was read
}

// readTip is read at the tip, which it gives, too.
func (e *Engine) readTip(id layout.ItemID, workflow string) (gitstore.View, *record, error) {
	v, err := e.store.Tip()
	if err != nil {
		return v, nil, err
	}
	rec, err := e.read(v, id, workflow)
	return v, rec, err
}

// read loads an item; workflow may be "" for events of the item as a whole.
func (e *Engine) read(r gitstore.Reader, id layout.ItemID, workflow string) (*record, error) {
	dir := layout.ItemDir(id)
	data, err := r.ReadFile(dir + "/" + layout.ExecutionJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NoItemError{Ref: string(id)}
	}
	if err != nil {
		return nil, fmt.Errorf("read item %s: %w", id, err)
	}
	rec := &record{at: r, executionJ: data}
	if rec.execution, err = e.decoded.take(id, data); err != nil {
		return nil, fmt.Errorf("item %s: %w", id, err)
	}
	if rec.manifestJ, err = r.ReadFile(dir + "/" + layout.ManifestJSON); err != nil {
		return nil, fmt.Errorf("item %s: read %s: %w", id, layout.ManifestJSON, err)
	}
	if rec.manifest, err = e.decoded.decodeManifest(id, rec.manifestJ); err != nil {
		return nil, fmt.Errorf("item %s: %w", id, err)
	}
	rec.execution.Manifest, rec.execution.Since, rec.execution.Around = rec.manifestJ, rec.manifest.Since, e.around(id)
	for name, w := range rec.execution.Workflows {
		plan, err := e.pinnedPlan(r, w.Digest)
		if err != nil {
			return nil, fmt.Errorf("item %s: %w", id, err)
		}
		rec.execution.Compute(name, plan)
		if name == workflow {
			rec.plan = plan
		}
	}
	if workflow != "" && rec.plan == nil {
		return nil, fmt.Errorf("item %s has no workflow %s", id.Short(), workflow)
	}
	return rec, nil
}

// actor is who causes a transition.
type actor struct {
	author gitstore.Signature
	agent  string // the Bagpipe-Agent trailer
}

func (e *Engine) byRobot(step layout.Name) actor {
	return actor{
		author: gitstore.Signature{Name: string(step), Email: "robot@" + e.o.Host.Name},
		agent:  string(step) + " " + e.runner(),
	}
}

func (e *Engine) byPerson() actor { return actor{author: e.o.Person, agent: e.person()} }

func (e *Engine) byEngine() actor {
	return actor{author: gitstore.Signature{Name: "Bagpipe", Email: "bagpipe@" + e.o.Host.Name}, agent: "bagpipe " + e.runner()}
}

// step makes one event happen to one step of an item and commits it. event is
// formed on the item as it is at the tip, again when another writer was faster;
// more may change further files of the item in the same commit.
func (e *Engine) step(ctx context.Context, id layout.ItemID, workflow string, who actor, text string,
	event func(*record) (state.Event, error), more func(*record, map[string][]byte) error,
) (state.Transition, error) {
	var tr state.Transition
	err := e.transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
		rec, err := e.read(r, id, workflow)
		if err != nil {
			return nil, err
		}
		ev, err := event(rec)
		if err != nil {
			return nil, err
		}
		if tr, err = state.Apply(rec.execution, rec.plan, ev); err != nil {
			return nil, err
		}
		dir := layout.ItemDir(id) + "/"
		data := rec.execution.Encode()
		files := map[string][]byte{dir + layout.ExecutionJSON: data}
		if more != nil {
			if err := more(rec, files); err != nil {
				return nil, err
			}
		}
		e.decoded.keep(id, data, rec.execution)
		return &gitstore.Change{Files: files, Author: who.author,
			Message: stepMessage(id, rec.manifest, tr, text, who.agent)}, nil
	})
	if err == nil {
		e.o.Log.Info("transition", "item", id, "workflow", workflow, "step", tr.Step, "from", tr.From, "to", tr.To, "attempt", tr.Attempt.String())
	}
	return tr, err
}

// Attempt is a claimed step, fenced by its key.
type Attempt struct {
	Item     layout.ItemID
	Workflow string
	Step     layout.Name
	Key      layout.AttemptKey
	Claimed  time.Time

	progress *state.Progress // what its robot told last, once it has ended
	children int             // registered, of those it made
}

// begin commits the claim of a step that was taken from the queue: waiting becomes
// in-progress. The limits of the workspace are asked again in the edit: what other
// engines claimed since Take is in the index by then, so that of two engines one is
// first.
func (e *Engine) begin(ctx context.Context, entry queue.Entry) (*Attempt, error) {
	id, workflow, step := entry.Item.ID, entry.Run, entry.Step
	a := &Attempt{Item: id, Workflow: workflow, Step: step, Claimed: e.o.Now()}
	_, err := e.step(ctx, id, workflow, e.byRobot(step), "", func(rec *record) (state.Event, error) {
		if e.index.Overtaken(entry) {
			return nil, &state.IllegalError{Event: "claim", Item: id, Workflow: workflow, Step: step, Reason: "a limit of the workspace holds it back: another engine was first"}
		}
		if err := e.checkOpen(rec, workflow, step); err != nil {
			return nil, err
		}
		a.Key = rec.execution.NextKey(step, e.id)
		return state.Claim{Workflow: workflow, Step: step, Attempt: a.Key, At: a.Claimed, Runner: e.runner()}, nil
	}, e.claimControl(a))
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Complete ends an attempt well: completed, or skipped as the result says, with
// the manifest and the inventory it changed in the same commit. A stale attempt
// is refused (state.ErrStale).
func (e *Engine) Complete(ctx context.Context, a *Attempt, started time.Time, res steps.Result) error {
	end := state.Completed
	if res.Status == steps.Skipped {
		end = state.Skipped
	}
	_, err := e.step(ctx, a.Item, a.Workflow, e.byRobot(a.Step), res.Message, func(rec *record) (state.Event, error) {
		from, to := e.endTimes(rec, a, started)
		return state.End{Workflow: a.Workflow, Step: a.Step, Attempt: a.Key, State: end,
			Started: from, At: to, Message: clip(printable(res.Message), maxMessage), Milestones: res.Milestones, Progress: a.progress, Children: a.children}, nil
	}, alsoFiles(describe(res), e.endControl(a, false)))
	return err
}

// describe changes manifest.json and inventory.json as a result says.
func describe(res steps.Result) func(*record, map[string][]byte) error {
	if res.Inventory == nil && len(res.Metadata) == 0 {
		return nil
	}
	return func(rec *record, files map[string][]byte) error {
		m := rec.manifest
		dir := layout.ItemDir(m.Item) + "/"
		if res.Inventory != nil {
			data, err := res.Inventory.Encode()
			if err != nil {
				return err
			}
			files[dir+layout.InventoryJSON] = data
			m.Inventory = &layout.InventorySummary{Digest: digestOf(data), Files: len(res.Inventory.Files), Bytes: res.Inventory.Bytes()}
		}
		m.Metadata = merge(m.Metadata, res.Metadata)
		data, err := m.Encode(rec.manifestJ)
		if err != nil {
			return err
		}
		files[dir+layout.ManifestJSON] = data
		return nil
	}
}

// merge lays new over old, object by object; null removes a key.
func merge(old, new map[string]any) map[string]any {
	out := make(map[string]any, len(old)+len(new))
	for k, v := range old {
		out[k] = v
	}
	for k, v := range new {
		below, isObject := v.(map[string]any)
		was, wasObject := out[k].(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case isObject && wasObject:
			out[k] = merge(was, below)
		default:
			out[k] = v
		}
	}
	return out
}

// Fail ends an attempt with the error err; milestones are reached all the same. A
// system failure that has retries left is tried again by itself, at the time the
// backoff says.
func (e *Engine) Fail(ctx context.Context, a *Attempt, started time.Time, err error, text string, milestones []layout.Name) error {
	kind := string(steps.KindOf(err))
	var unavailable *steps.Unavailable
	gone := errors.As(err, &unavailable)
	message := clip(printable(err.Error()), maxMessage)
	_, cerr := e.step(ctx, a.Item, a.Workflow, e.byRobot(a.Step), message, func(rec *record) (state.Event, error) {
		from, to := e.endTimes(rec, a, started)
		end := state.End{Workflow: a.Workflow, Step: a.Step, Attempt: a.Key, State: state.Failed, Unavailable: gone, Kind: kind,
			Started: from, At: to, Message: message, Text: clip(printable(text), maxMessage), Milestones: milestones, Progress: a.progress, Children: a.children}
		failures := rec.execution.Failures(a.Workflow, a.Step) + 1
		if s := rec.plan.Step(a.Step); s != nil && kind == state.SystemKind && failures <= s.Retries {
			end.RetryAt = e.o.Now().Add(e.backoff(s, failures))
		}
		return end, nil
	}, e.endControl(a, gone))
	return cerr
}

// Defer ends an attempt whose robot asked to be called again later.
func (e *Engine) Defer(ctx context.Context, a *Attempt, started time.Time, later *steps.Later) error {
	after := later.After
	if after <= 0 {
		after = e.current().settings.laterPause()
	}
	_, err := e.step(ctx, a.Item, a.Workflow, e.byRobot(a.Step), later.Error(), func(*record) (state.Event, error) {
		now := e.o.Now()
		return state.End{Workflow: a.Workflow, Step: a.Step, Attempt: a.Key, State: state.Deferred,
			Started: started, At: now, RetryAt: now.Add(after), Message: clip(printable(later.Error()), maxMessage), Progress: a.progress, Children: a.children}, nil
	}, nil)
	return err
}

// abandon gives an attempt back that was claimed or begun but not ended: the
// step waits again, and the attempt is marked lost. It costs no retry.
func (e *Engine) abandon(ctx context.Context, id layout.ItemID, workflow string, step layout.Name, key layout.AttemptKey, why string) error {
	intent, err := e.intentKey()
	if err != nil {
		return err
	}
	_, err = e.step(ctx, id, workflow, e.byEngine(), why, func(*record) (state.Event, error) {
		return state.Lost{Key: intent, Workflow: workflow, Step: step, Attempt: key, At: e.o.Now(), By: e.byEngine().agent}, nil
	}, nil)
	return err
}

// failInternally gives an attempt up and fails its workflow, for a fault of
// Bagpipe's own; no step is failed.
func (e *Engine) failInternally(ctx context.Context, a *Attempt, cause *InternalError) error {
	key, err := e.intentKey()
	if err != nil {
		return err
	}
	lost, err := e.intentKey()
	if err != nil {
		return err
	}
	text := clip(printable(cause.Error()), maxMessage)
	_, err = e.step(ctx, a.Item, a.Workflow, e.byEngine(), text, func(*record) (state.Event, error) {
		return state.Internal{Key: key, LostKey: lost, Workflow: a.Workflow, Step: a.Step, Attempt: a.Key,
			At: e.o.Now(), By: e.byEngine().agent, Text: text}, nil
	}, nil)
	return err
}

// notNeeded skips a step that the item does not need: it was not asked for, or its
// condition does not hold.
func (e *Engine) notNeeded(ctx context.Context, id layout.ItemID, workflow string, step layout.Name, why string) error {
	_, err := e.step(ctx, id, workflow, e.byEngine(), why, func(rec *record) (state.Event, error) {
		return state.Unneeded{Workflow: workflow, Step: step, Attempt: rec.execution.NextKey(step, e.id),
			At: e.o.Now(), By: e.byEngine().agent}, nil
	}, nil)
	return err
}
