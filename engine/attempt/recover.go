package attempt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bagpipe/engine/claim"
	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Recovery takes up what dead engines left: their attempts, lock files and scratch folders.
type Recovery struct{ rooms }

// SweepClaims removes the lock files of dead engines, so that a lock file says who is at
// work, and with them what the ended attempts at those items replaced: an engine releases its
// claim last. An engine that needs one earlier takes it over.
func (r *Recovery) SweepClaims() error {
	self, err := r.ledger.Seat.Engine()
	if err != nil {
		return err
	}
	holders, err := claim.List(r.ledger.Root)
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range holders {
		if h.Damaged {
			if err := self.Discard(h); err != nil {
				errs = append(errs, err)
			}
			continue
		}
		if lives, err := r.ledger.Seat.Alive(h.Engine); err != nil || lives {
			continue
		}
		c, err := self.Take(claim.Key{Item: h.Item, Workflow: h.Workflow, Step: h.Step}, layout.AttemptKey{N: 1, Engine: r.ledger.ID})
		var held *claim.HeldError
		if errors.As(err, &held) {
			continue
		}
		if err == nil {
			err = errors.Join(r.forgetOf(h.Item, r.ledger.Path(layout.ItemDir(h.Item))), c.Release())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("clear the claim of dead engine %s: %w", h.Engine, err))
		}
	}
	return errors.Join(errs...)
}

// Recover puts back the files that a dead engine's attempt had replaced, and lets its step
// wait again. It holds the step's claim meanwhile, so that of several engines one
// recovers the step and none runs it.
func (r *Recovery) Recover(ctx context.Context, a layout.AttemptRef, why string) error {
	c, err := r.take(ctx, a)
	var held *claim.HeldError
	if errors.As(err, &held) {
		return nil // another engine is at it
	}
	if err != nil {
		return err
	}
	defer func() {
		if err := c.Release(); err != nil {
			r.ledger.Log.Warn("release claim", "item", a.Item, "step", a.Step, "err", err)
		}
	}()
	ended, err := r.ended(a)
	if err != nil || ended {
		return err
	}
	if err := putBack(r.folder, r.ledger.Path(layout.ItemDir(a.Item)), a); err != nil {
		return err
	}
	if err := abandon(ctx, r.ledger, a, why); !ledger.IsRefused(err) {
		return err
	}
	return nil
}

// take claims the step of an attempt. A lock file that a power cut left without its content names
// no engine, and is waited for until it is nobody's: a run that passed it by would end over it.
func (r *Recovery) take(ctx context.Context, a layout.AttemptRef) (*claim.Claim, error) {
	self, err := r.ledger.Seat.Engine()
	if err != nil {
		return nil, err
	}
	key, next := claim.Key{Item: a.Item, Workflow: a.Workflow, Step: a.Step}, layout.AttemptKey{N: a.Key.N + 1, Engine: r.ledger.ID}
	for until := time.Now().Add(2 * claim.DamagedLimit); ; {
		c, err := self.Take(key, next)
		var held *claim.HeldError
		if !errors.As(err, &held) || !held.Holder.Damaged || time.Now().After(until) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ended reports whether an attempt has ended by the newest history, or is another site's to
// end; one that is gone from the record has not.
func (r *Recovery) ended(a layout.AttemptRef) (bool, error) {
	_, rec, err := r.ledger.ReadTip(a.Item, "")
	if err != nil {
		return false, err
	}
	_, s := rec.Execution.Find(a.Workflow, a.Step)
	if s == nil {
		return false, nil
	}
	now, there := s.Attempts[a.Key]
	return there && (now.State != state.InProgress || !r.ledger.Site.Mine(state.SiteOf(now.Runner))), nil
}

// RecoverLost lets steps wait again whose engine is dead.
func (r *Recovery) RecoverLost(ctx context.Context) error {
	var errs []error
	alive := livingOnce(r.ledger.Seat.Alive)
	for _, it := range r.index.Loaded().Running() {
		for run, i := range it.Steps() {
			s := &run.Steps[i]
			if s.Status != state.InProgress || !r.ledger.Site.Mine(state.SiteOf(s.Runner)) {
				continue
			}
			lives, err := alive(s.Current.Engine)
			if err != nil {
				errs = append(errs, fmt.Errorf("see whether engine %s lives: %w", s.Current.Engine, err))
				continue
			}
			if lives {
				continue
			}
			why := fmt.Sprintf("engine %s (%s) is gone; the step is resumed", s.Current.Engine, s.Runner)
			a := layout.AttemptRef{Item: it.ID, Workflow: run.Name, Step: layout.Name(run.Plan.Steps[i].Name), Key: s.Current}
			err = r.Recover(ctx, a, why)
			if err == nil {
				err = holdDeadly(ctx, r.ledger, a)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("recover item %s: %w", it.ID.Short(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// livingOnce asks once for each engine that lives: a fleet has ten thousand attempts of a thousand workers, and an answer takes a look
// at a file.
func livingOnce(alive func(layout.EngineID) (bool, error)) func(layout.EngineID) (bool, error) {
	living := map[layout.EngineID]bool{}
	return func(id layout.EngineID) (lives bool, err error) {
		if living[id] {
			return true, nil
		}
		lives, err = alive(id)
		living[id] = lives && err == nil
		return lives, err
	}
}

// mostDeaths is how many engines in a row may die at a step of an item before the item is held: the step
// may be what ends them, and would end the next, with all that is at work there.
const mostDeaths = 10

// holdDeadly holds an item at a step of which too many engines died.
func holdDeadly(ctx context.Context, l *ledger.Ledger, a layout.AttemptRef) error {
	_, rec, err := l.ReadTip(a.Item, a.Workflow)
	if err != nil || state.Deaths(rec.Execution, a.Workflow, a.Step) < mostDeaths {
		return err
	}
	key, err := l.IntentKey()
	if err != nil {
		return err
	}
	who := l.ByEngine()
	return l.Transact(ctx, a.Item, func(r gitstore.Reader) (*gitstore.Change, error) {
		rec, err := l.Read(r, a.Item, a.Workflow)
		if err != nil || len(rec.Execution.Holds()) > 0 {
			return nil, err
		}
		text := fmt.Sprintf("%d engines in a row ended while they were at %s/%s; it may be what ends them, for want of memory, say. Released, it is tried again",
			state.Deaths(rec.Execution, a.Workflow, a.Step), a.Workflow, a.Step)
		if _, err := state.Apply(rec.Execution, nil, state.Hold{Key: key, At: l.Now(), By: who.Agent, Text: text}); err != nil {
			return nil, err
		}
		return &gitstore.Change{Files: map[string][]byte{layout.ItemDir(a.Item) + "/" + layout.ExecutionJSON: rec.Execution.Encode()},
			Message: who.Sign(ledger.IntentMessage(a.Item, rec.Manifest, state.HoldIntent, "held", text, who.Agent)), Author: who.Author}, nil
	})
}

// forgetEnded removes the files that the ended attempts of a dead engine replaced: the
// engine died between the commit and the removal. The names of the scratch folders name
// the attempts.
func (r *Recovery) forgetEnded(scratch string) error {
	entries, err := os.ReadDir(scratch)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // another engine is at it, too
		return err
	}
	for _, entry := range entries {
		a, ok := folder.AttemptOf(entry.Name())
		if !ok {
			continue
		}
		if _, err := os.Lstat(r.folder.AsideOf(a)); err != nil {
			continue
		}
		ended, err := r.ended(a)
		if err != nil || !ended {
			continue // the item's own trouble is told where it is met
		}
		if err := r.folder.ForgetReplaced(a); err != nil {
			return err
		}
	}
	return nil
}

// SweepScratch removes the scratch folders of engines that are no longer alive.
func (r *Recovery) SweepScratch(alive func(layout.EngineID) (bool, error)) error {
	entries, err := os.ReadDir(r.ledger.Path(layout.ScratchDir))
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
		scratch := filepath.Join(r.ledger.Path(layout.ScratchDir), entry.Name())
		err = r.forgetEnded(scratch)
		if err == nil {
			err = disk.RemoveTree(scratch)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remove scratch of dead engine %s: %w", id, err))
		}
	}
	return errors.Join(append(errs, disk.SyncDir(r.ledger.Path(layout.ScratchDir)))...)
}

// abandon gives an attempt back that was claimed or begun but not ended: the
// step waits again, and the attempt is marked lost. It costs no retry.
func abandon(ctx context.Context, l *ledger.Ledger, a layout.AttemptRef, why string) error {
	intent, err := l.IntentKey()
	if err != nil {
		return err
	}
	_, err = l.Step(ctx, a.Item, a.Workflow, l.ByEngine(), why, func(*ledger.Record) (state.Event, error) {
		return state.Lost{Key: intent, Workflow: a.Workflow, Step: a.Step, Attempt: a.Key, At: l.Now(), By: l.ByEngine().Agent}, nil
	}, nil)
	return err
}
