package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"bagpipe/engine/claim"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// repairFolders brings the records shown in the item folders in line with the
// history: what changed since the last engine before anything else; and of up to some
// thousand items every one, beside the work, which finds those edited in place. Of more,
// maintain does.
func (e *Engine) repairFolders(ctx context.Context) error {
	const fewEnough = 10_000
	if err := e.store.Repair(ctx); err != nil {
		return fmt.Errorf("bring the item folders in line with the history: %w", err)
	}
	if e.index.Len() <= fewEnough {
		e.store.RepairRest()
	}
	return nil
}

// resume takes up what dead engines left: scratch, intake, attempts.
func (r *run) resume(ctx context.Context) error {
	e := r.e
	r.each(e.recoverLost(ctx))
	r.each(e.sweepScratch(e.seat.Alive))
	r.each(e.sweepClaims())
	if err := r.ending(); err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	var err error
	r.left, err = e.resumeIntake(ctx, r.box, nil, r.admitted)
	r.each(err)
	return errors.Join(r.ending(), ctx.Err())
}

// sweepClaims removes the lock files of dead engines, so that those which are
// there tell who is at work. Whoever needs one earlier takes it over.
func (e *Engine) sweepClaims() error {
	self, err := e.seat.Engine()
	if err != nil {
		return err
	}
	holders, err := claim.List(e.root)
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range holders {
		if h.Damaged {
			continue
		}
		if lives, err := e.seat.Alive(h.Engine); err != nil || lives {
			continue
		}
		c, err := self.Take(claim.Key{Item: h.Item, Workflow: h.Workflow, Step: h.Step}, layout.AttemptKey{N: 1, Engine: e.id})
		var held *claim.HeldError
		if errors.As(err, &held) {
			continue
		}
		if err == nil {
			err = c.Release()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("clear the claim of dead engine %s: %w", h.Engine, err))
		}
	}
	return errors.Join(errs...)
}

// recover puts back what a dead engine's attempt had replaced, and lets its step
// wait again. It holds the step's claim meanwhile, so that of several engines one
// does it and none runs the step.
func (e *Engine) recover(ctx context.Context, a *Attempt, why string) error {
	self, err := e.seat.Engine()
	if err != nil {
		return err
	}
	c, err := self.Take(claim.Key{Item: a.Item, Workflow: a.Workflow, Step: a.Step}, layout.AttemptKey{N: a.Key.N + 1, Engine: e.id})
	var held *claim.HeldError
	if errors.As(err, &held) {
		return nil // another engine is at it
	}
	if err != nil {
		return err
	}
	defer func() {
		if err := c.Release(); err != nil {
			e.o.Log.Warn("release claim", "item", a.Item, "step", a.Step, "err", err)
		}
	}()
	ended, err := e.attemptEnded(a)
	if err != nil || ended {
		return err
	}
	if err := e.putBack(a); err != nil {
		return err
	}
	if err := e.abandon(ctx, a.Item, a.Workflow, a.Step, a.Key, why); err != nil && !IsRefused(err) {
		return err
	}
	return nil
}

// attemptEnded tells, by the newest history, whether an attempt has ended well or
// badly; one that is gone from the record has not.
func (e *Engine) attemptEnded(a *Attempt) (bool, error) {
	v, err := e.store.Tip()
	if err != nil {
		return false, err
	}
	rec, err := e.read(v, a.Item, "")
	if err != nil {
		return false, err
	}
	_, s := rec.execution.Find(a.Workflow, a.Step)
	if s == nil {
		return false, nil
	}
	now, there := s.Attempts[a.Key]
	return there && now.State != state.InProgress, nil
}

// recoverLost lets steps wait again whose engine is dead.
func (e *Engine) recoverLost(ctx context.Context) error {
	var errs []error
	for _, it := range e.index.Running() {
		for r := range it.Runs {
			run := &it.Runs[r]
			for i := range run.Steps {
				s := &run.Steps[i]
				if s.Status != state.InProgress {
					continue
				}
				lives, err := e.seat.Alive(s.Current.Engine)
				if err != nil {
					errs = append(errs, fmt.Errorf("see whether engine %s lives: %w", s.Current.Engine, err))
					continue
				}
				if lives {
					continue
				}
				why := fmt.Sprintf("engine %s (%s) is gone; the step is resumed", s.Current.Engine, s.Runner)
				a := &Attempt{Item: it.ID, Workflow: run.Name, Step: layout.Name(run.Plan.Steps[i].Name), Key: s.Current}
				if err := e.recover(ctx, a, why); err != nil {
					errs = append(errs, fmt.Errorf("recover item %s: %w", it.ID.Short(), err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// forgetEnded removes what the attempts of a dead engine replaced, if they had
// ended: the engine died between the commit and the removal. The scratch folders'
// names tell the attempts.
func (e *Engine) forgetEnded(scratch string) error {
	entries, err := os.ReadDir(scratch)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // another engine is at it, too
		return err
	}
	for _, entry := range entries {
		a, ok := attemptOf(entry.Name())
		if !ok {
			continue
		}
		if _, err := os.Lstat(e.asideOf(a)); err != nil {
			continue
		}
		ended, err := e.attemptEnded(a)
		if err != nil || !ended {
			continue // the item's own trouble is told where it is met
		}
		if err := e.forgetReplaced(a); err != nil {
			return err
		}
	}
	return nil
}

// attemptOf reads the name of a scratch folder: ITEM.WORKFLOW.N.STEP.ATTEMPT. Names
// may hold dots, so only what is certain is used: the item first, the attempt last.
func attemptOf(name string) (*Attempt, bool) {
	id, rest, ok := strings.Cut(name, ".")
	last := strings.LastIndexByte(rest, '.')
	if !ok || last < 0 {
		return nil, false
	}
	item, err := layout.ParseItemID(id)
	if err != nil {
		return nil, false
	}
	key, err := layout.ParseAttemptKey(rest[last+1:])
	if err != nil {
		return nil, false
	}
	run, step, ok := splitRun(rest[:last])
	return &Attempt{Item: item, Workflow: run, Step: layout.Name(step), Key: key}, ok
}

// splitRun cuts WORKFLOW.N.STEP at the first number between dots.
func splitRun(s string) (run, step string, ok bool) {
	for i := 1; i < len(s); i++ {
		if s[i] != '.' {
			continue
		}
		n, after, found := strings.Cut(s[i+1:], ".")
		if _, err := strconv.Atoi(n); found && err == nil {
			return s[:i+1] + n, after, true
		}
	}
	return "", "", false
}

// sweepScratch removes the scratch folders of engines that are no longer alive.
func (e *Engine) sweepScratch(alive func(layout.EngineID) (bool, error)) error {
	entries, err := os.ReadDir(e.path(layout.ScratchDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		id, err := layout.ParseEngineID(entry.Name())
		if err != nil {
			continue
		}
		if lives, err := alive(id); err != nil || lives {
			continue
		}
		scratch := filepath.Join(e.path(layout.ScratchDir), entry.Name())
		err = e.forgetEnded(scratch)
		if err == nil {
			err = disk.RemoveTree(scratch)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remove scratch of dead engine %s: %w", id, err))
		}
	}
	return errors.Join(errors.Join(errs...), disk.SyncDir(e.path(layout.ScratchDir)))
}
