package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/engine/claim"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// repairFolders brings the records shown in the item folders in line with the
// history. Up to some thousand items every one is looked at, which finds those
// edited in place; beyond that maintain does, and here only what changed since
// the last engine is.
func (e *Engine) repairFolders(ctx context.Context) error {
	const fewEnough = 10_000
	repair := e.store.Repair
	if e.index.Len() <= fewEnough {
		repair = e.store.RepairAll
	}
	if err := repair(ctx); err != nil {
		return fmt.Errorf("bring the item folders in line with the history: %w", err)
	}
	return nil
}

// resume takes up what dead engines left: scratch, intake, attempts.
func (r *run) resume(ctx context.Context) error {
	e := r.e
	if err := e.sweepScratch(e.alive); err != nil {
		return err
	}
	if err := e.recoverLost(ctx); err != nil {
		return err
	}
	if err := e.sweepClaims(); err != nil {
		return err
	}
	var err error
	r.left, err = e.resumeIntake(ctx, r.box, nil, r.admitted)
	if err != nil && (len(r.left) > 0 || mustStop(err) || ctx.Err() != nil) {
		return err
	}
	if r.aside = err; err != nil {
		r.tell(err.Error())
	}
	return nil
}

// alive tells whether an engine lives.
func (e *Engine) alive(id layout.EngineID) (bool, error) {
	if id == e.id {
		return true, nil
	}
	self, err := e.register()
	if err != nil {
		return true, err
	}
	return self.Alive(id)
}

// sweepClaims removes the lock files of dead engines, so that those which are
// there tell who is at work. Whoever needs one earlier takes it over.
func (e *Engine) sweepClaims() error {
	self, err := e.register()
	if err != nil {
		return err
	}
	holders, err := claim.List(e.root)
	if err != nil {
		return err
	}
	for _, h := range holders {
		if h.Damaged {
			continue
		}
		if lives, err := e.alive(h.Engine); err != nil || lives {
			continue
		}
		c, err := self.Take(claim.Key{Item: h.Item, Workflow: h.Workflow, Step: h.Step}, layout.AttemptKey{N: 1, Engine: e.id})
		var held *claim.HeldError
		if errors.As(err, &held) {
			continue
		}
		if err != nil {
			return fmt.Errorf("clear the claim of dead engine %s: %w", h.Engine, err)
		}
		if err := c.Release(); err != nil {
			return err
		}
	}
	return nil
}

// recoverLost lets steps wait again whose engine is dead.
func (e *Engine) recoverLost(ctx context.Context) error {
	for _, it := range e.index.Running() {
		for r := range it.Runs {
			run := &it.Runs[r]
			for i := range run.Steps {
				s := &run.Steps[i]
				if s.Status != state.InProgress {
					continue
				}
				lives, err := e.alive(s.Current.Engine)
				if err != nil {
					return fmt.Errorf("see whether engine %s lives: %w", s.Current.Engine, err)
				}
				if lives {
					continue
				}
				why := fmt.Sprintf("engine %s (%s) is gone; the step is resumed", s.Current.Engine, s.Runner)
				err = e.abandon(ctx, it.ID, run.Name, layout.Name(run.Plan.Steps[i].Name), s.Current, why)
				if err != nil && !IsRefused(err) {
					return fmt.Errorf("recover item %s: %w", it.ID.Short(), err)
				}
			}
		}
	}
	return nil
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
	for _, entry := range entries {
		id, err := layout.ParseEngineID(entry.Name())
		if err != nil {
			continue
		}
		if lives, err := alive(id); err != nil || lives {
			continue
		}
		if err := os.RemoveAll(filepath.Join(e.path(layout.ScratchDir), entry.Name())); err != nil {
			return fmt.Errorf("remove scratch of dead engine %s: %w", id, err)
		}
	}
	return disk.SyncDir(e.path(layout.ScratchDir))
}
