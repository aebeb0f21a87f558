package attempt

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
	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// SweepClaims removes the lock files of dead engines, so that those which are
// there tell who is at work. Whoever needs one earlier takes it over.
func (at *Attempts) SweepClaims() error {
	self, err := at.ledger.Seat.Engine()
	if err != nil {
		return err
	}
	holders, err := claim.List(at.ledger.Root)
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range holders {
		if h.Damaged {
			continue
		}
		if lives, err := at.ledger.Seat.Alive(h.Engine); err != nil || lives {
			continue
		}
		c, err := self.Take(claim.Key{Item: h.Item, Workflow: h.Workflow, Step: h.Step}, layout.AttemptKey{N: 1, Engine: at.ledger.ID})
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

// Recover puts back what a dead engine's attempt had replaced, and lets its step
// wait again. It holds the step's claim meanwhile, so that of several engines one
// does it and none runs the step.
func (at *Attempts) Recover(ctx context.Context, a *folder.Attempt, why string) error {
	self, err := at.ledger.Seat.Engine()
	if err != nil {
		return err
	}
	c, err := self.Take(claim.Key{Item: a.Item, Workflow: a.Workflow, Step: a.Step}, layout.AttemptKey{N: a.Key.N + 1, Engine: at.ledger.ID})
	var held *claim.HeldError
	if errors.As(err, &held) {
		return nil // another engine is at it
	}
	if err != nil {
		return err
	}
	defer func() {
		if err := c.Release(); err != nil {
			at.ledger.Log.Warn("release claim", "item", a.Item, "step", a.Step, "err", err)
		}
	}()
	ended, err := at.attemptEnded(a)
	if err != nil || ended {
		return err
	}
	if err := at.folder.PutBack(a); err != nil {
		return err
	}
	if err := at.abandon(ctx, a.Item, a.Workflow, a.Step, a.Key, why); err != nil && !ledger.IsRefused(err) {
		return err
	}
	return nil
}

// attemptEnded tells, by the newest history, whether an attempt has ended well or
// badly; one that is gone from the record has not.
func (at *Attempts) attemptEnded(a *folder.Attempt) (bool, error) {
	v, err := at.ledger.Store.Tip()
	if err != nil {
		return false, err
	}
	rec, err := at.ledger.Read(v, a.Item, "")
	if err != nil {
		return false, err
	}
	_, s := rec.Execution.Find(a.Workflow, a.Step)
	if s == nil {
		return false, nil
	}
	now, there := s.Attempts[a.Key]
	return there && now.State != state.InProgress, nil
}

// RecoverLost lets steps wait again whose engine is dead.
func (at *Attempts) RecoverLost(ctx context.Context) error {
	var errs []error
	for _, it := range at.index.Loaded().Running() {
		for run, i := range it.Steps() {
			s := &run.Steps[i]
			if s.Status != state.InProgress {
				continue
			}
			lives, err := at.ledger.Seat.Alive(s.Current.Engine)
			if err != nil {
				errs = append(errs, fmt.Errorf("see whether engine %s lives: %w", s.Current.Engine, err))
				continue
			}
			if lives {
				continue
			}
			why := fmt.Sprintf("engine %s (%s) is gone; the step is resumed", s.Current.Engine, s.Runner)
			a := &folder.Attempt{Item: it.ID, Workflow: run.Name, Step: layout.Name(run.Plan.Steps[i].Name), Key: s.Current}
			if err := at.Recover(ctx, a, why); err != nil {
				errs = append(errs, fmt.Errorf("recover item %s: %w", it.ID.Short(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// forgetEnded removes what the attempts of a dead engine replaced, if they had
// ended: the engine died between the commit and the removal. The scratch folders'
// names tell the attempts.
func (at *Attempts) forgetEnded(scratch string) error {
	entries, err := os.ReadDir(scratch)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // another engine is at it, too
		return err
	}
	for _, entry := range entries {
		a, ok := attemptOf(entry.Name())
		if !ok {
			continue
		}
		if _, err := os.Lstat(at.folder.AsideOf(a)); err != nil {
			continue
		}
		ended, err := at.attemptEnded(a)
		if err != nil || !ended {
			continue // the item's own trouble is told where it is met
		}
		if err := at.folder.ForgetReplaced(a); err != nil {
			return err
		}
	}
	return nil
}

// attemptOf reads the name of a scratch folder: ITEM.WORKFLOW.N.STEP.ATTEMPT. Names
// may hold dots, so only what is certain is used: the item first, the attempt last.
func attemptOf(name string) (*folder.Attempt, bool) {
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
	return &folder.Attempt{Item: item, Workflow: run, Step: layout.Name(step), Key: key}, ok
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

// SweepScratch removes the scratch folders of engines that are no longer alive.
func (at *Attempts) SweepScratch(alive func(layout.EngineID) (bool, error)) error {
	entries, err := os.ReadDir(at.ledger.Path(layout.ScratchDir))
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
		scratch := filepath.Join(at.ledger.Path(layout.ScratchDir), entry.Name())
		err = at.forgetEnded(scratch)
		if err == nil {
			err = disk.RemoveTree(scratch)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remove scratch of dead engine %s: %w", id, err))
		}
	}
	return errors.Join(errors.Join(errs...), disk.SyncDir(at.ledger.Path(layout.ScratchDir)))
}
