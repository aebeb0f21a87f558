package attempt

import (
	"context"
	"path/filepath"

	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// Rehearsal is a step that is run again, on inputs that an attempt kept, on another machine. Nothing of it is
// committed, and nothing of the item changes.
type Rehearsal struct {
	AttemptRef layout.AttemptRef
	Done       chan Replayed // one: how it went

	a        *Attempts
	from, to string
	kept     folder.KeptCall
	call     *steps.Call
}

// Rehearse prepares a rehearsal of a step, of the attempt that is named or the last one kept, in a new folder
// below the system's temporary one. key names it while it lasts.
func (a Abroad) Rehearse(ref ledger.StepRef, attempt string, key layout.AttemptKey) (*Rehearsal, error) {
	from, kept, err := findKept(a.ledger.Path(layout.ItemDir(ref.Item)), ref, attempt)
	if err != nil {
		return nil, err
	}
	to, err := replayFolder("")
	if err != nil {
		return nil, err
	}
	return &Rehearsal{AttemptRef: layout.AttemptRef{Item: ref.Item, Workflow: kept.Workflow, Step: kept.Step, Key: key}, Done: make(chan Replayed, 1),
		a: a.Attempts, from: from, to: to, kept: kept}, nil
}

// Prepare gives what the robot was given.
func (r *Rehearsal) Prepare(context.Context) (c *steps.Call, s *state.Step, err error) {
	if r.call == nil {
		if r.call, err = r.a.replayCall(r.from, r.to, r.kept); err != nil {
			return nil, nil, err
		}
		r.call.Attempt = r.AttemptRef.Key
	}
	return r.call, &state.Step{Name: string(r.kept.Step), How: state.How{Robot: r.kept.Robot, Command: r.kept.Command, With: r.kept.With}}, nil
}

// Again is Prepare.
func (r *Rehearsal) Again(ctx context.Context) (*steps.Call, *state.Step, error) {
	return r.Prepare(ctx)
}

// Item is the folder of the copies that the robot reads.
func (r *Rehearsal) Item() string { return filepath.Join(r.to, "item") }

// Scratch is the folder of what it makes.
func (r *Rehearsal) Scratch() string { return filepath.Join(r.to, "scratch") }

// End tells how it went.
func (r *Rehearsal) End(_ context.Context, res steps.Result, failure error, log string) error {
	told := replayed(r.kept, r.to, res, failure)
	if told.Log = ""; log != "" {
		if rel, err := filepath.Rel(r.to, log); err == nil {
			told.Log = rel
		}
	}
	select {
	case r.Done <- told:
	default: // it was told before
	}
	return nil
}

// GiveUp tells that the worker did not do it.
func (r *Rehearsal) GiveUp(ctx context.Context, why string) error {
	return r.End(ctx, steps.Result{}, &steps.Later{Reason: why}, "")
}

// LostBefore counts none: nothing is committed.
func (r *Rehearsal) LostBefore() int { return 0 }

// Leave tells that the engine ends.
func (r *Rehearsal) Leave() { _ = r.GiveUp(context.Background(), "the engine ended") }
