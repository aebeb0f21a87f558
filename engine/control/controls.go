package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/runner"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// The rules are: what stands in controls/steps.json at the tip is in force, unless
// it cannot be read: then the last version that could be. Here it is kept as it
// was last seen; whatever writes (a claim, an end, a person's act, a threshold)
// reads it again at the tip, in the edit, so that of two engines one is first. The
// counts of thresholds are derived from the items' records as they come into the
// index.

// controls is how steps stand over all items, and what their thresholds look at.
type Panel struct {
	ledger *ledger.Ledger

	now     atomic.Pointer[inForce]
	unread  func() // a version was committed that cannot be read
	changed func() // controls came into force

	deployed func(workflow string, s *state.Step) *state.Step // a step as it is to be run now

	mu      sync.Mutex // guards the rest
	tallies map[state.Ref]*tally
	told    string              // of a version that cannot be read
	stopped map[state.Ref]bool  // by thresholds, since the run began
	halt    func()              // called when one is; nil: not
	stops   map[state.Ref]int64 // the stops there were when the run began, in ms
}

// inForce are the controls in force, and the bytes that say so; not changed, but replaced.
type inForce struct {
	controls *state.Controls
	said     []byte
}

// tally is what the threshold of one step looks at.
type tally struct {
	runner.Tally
	last    time.Time   // of the newest failure,
	step    *state.Step // the step as its item is pinned to
	pending int         // failures not yet committed
}

func (c *Panel) Current() *state.Controls {
	if now := c.now.Load(); now != nil {
		return now.controls
	}
	return &state.Controls{}
}

// RefOf names the step of a run of a workflow over all items.
func RefOf(run string, step layout.Name) state.Ref {
	base, _ := state.Instance(run)
	return state.Ref{Workflow: base, Step: step}
}

// loadControls reads the controls in force.
func (pa *Panel) Load(ctx context.Context, v gitstore.View) error {
	data, err := ledger.ReadOptional(v, layout.ControlsFile)
	if err != nil {
		return err
	}
	c, bad := state.DecodeControls(data)
	if bad != nil {
		if c, data, err = pa.lastControls(ctx, v); err != nil {
			return err
		}
		pa.warnControls(bad)
	}
	pa.setControls(c, data)
	return nil
}

// lastControls finds the newest version in the history that can be read.
func (pa *Panel) lastControls(ctx context.Context, v gitstore.View) (*state.Controls, []byte, error) {
	for c, err := range pa.ledger.Store.History(ctx, gitstore.HistoryOptions{Path: layout.ControlsFile, From: v.Commit()}) {
		if err != nil {
			return nil, nil, fmt.Errorf("look for a sound version of %s: %w", layout.ControlsFile, err)
		}
		old, err := pa.ledger.Store.At(c.Hash)
		if err != nil {
			return nil, nil, err
		}
		data, err := ledger.ReadOptional(old, layout.ControlsFile)
		if err != nil {
			return nil, nil, err
		}
		if sound, err := state.DecodeControls(data); err == nil {
			return sound, data, nil
		}
	}
	return &state.Controls{}, nil, nil
}

// warnControls tells of a version that cannot be read, once.
func (pa *Panel) warnControls(bad error) {
	c := pa
	c.mu.Lock()
	again := c.told == bad.Error()
	c.told = bad.Error()
	c.mu.Unlock()
	if !again {
		pa.ledger.Warn(fmt.Sprintf("%v; this version was pushed; the last sound one stays in force", bad))
	}
}

// NoteControls takes in a change of the file; an observer.
func (pa *Panel) NoteControls(a gitstore.Advance) {
	for _, c := range a.Changes {
		if c.Path != layout.ControlsFile {
			continue
		}
		if sound, err := state.DecodeControls(c.Data); err == nil {
			pa.setControls(sound, c.Data)
		} else {
			pa.unread()
		}
	}
}

// setControls puts controls in force, as these bytes say them.
func (pa *Panel) setControls(c *state.Controls, said []byte) {
	pa.now.Store(&inForce{c, said})
	pa.heed(c)
	pa.changed()
}

const DisabledCode = "disabled"

func GoesOn(status state.Status, why *state.Reason) bool {
	return status == state.InProgress || status == state.Waiting && (why == nil || why.Code == "retry")
}

// ControlsAt reads the controls where an edit is made. What cannot be read is
// written over with what is in force; a newer version's file is not.
func (pa *Panel) ControlsAt(r gitstore.Reader) (*state.Controls, error) {
	data, err := ledger.ReadOptional(r, layout.ControlsFile)
	if err != nil {
		return nil, err
	}
	return pa.decode(data)
}

// decode is ControlsAt of the file's bytes.
func (pa *Panel) decode(data []byte) (*state.Controls, error) {
	c, err := state.DecodeControls(data)
	var newer *layout.SchemaError
	switch {
	case err == nil:
		return c, nil
	case errors.As(err, &newer):
		return nil, err
	}
	sound, err := pa.Current().Encode()
	if err != nil {
		return nil, err
	}
	return state.DecodeControls(sound)
}

// ClaimControl refuses the claim of a disabled step, or makes it the step's trial
// in the same commit.
func (pa *Panel) ClaimControl(a layout.AttemptRef) func(*ledger.Record, map[string][]byte) error {
	ref := RefOf(a.Workflow, a.Step)
	return func(rec *ledger.Record, files map[string][]byte) error {
		data, err := ledger.ReadOptional(rec.At, layout.ControlsFile)
		if err != nil {
			return err
		}
		if now := pa.now.Load(); now != nil && bytes.Equal(data, now.said) && !now.controls.Disabled(ref) {
			return nil // every claim asks, and they seldom change
		}
		c, err := pa.decode(data)
		var newer *layout.SchemaError
		if errors.As(err, &newer) && !pa.Current().Disabled(ref) {
			return nil // what could be read last is in force
		}
		if err != nil {
			return err
		}
		if !c.Disabled(ref) {
			return nil
		}
		open, why := c.Steps[ref].Open(a.Item, a.Workflow, pa.ledger.Now(), func(t *state.Trial) bool { return pa.TrialStands(rec.At, t, a.Step) })
		if !open {
			return &state.IllegalError{Event: "claim", Item: a.Item, Workflow: a.Workflow, Step: a.Step, Reason: why}
		}
		if !c.Try(ref, a.Item, a.Workflow, pa.ledger.Now()) {
			return nil
		}
		files[layout.ControlsFile], err = c.Encode()
		return err
	}
}

// TrialStands is stands, by the records where an edit is made.
func (pa *Panel) TrialStands(r gitstore.Reader, t *state.Trial, step layout.Name) bool {
	rec, err := pa.ledger.Read(r, t.Item, t.Workflow)
	if err != nil {
		return false // gone or broken
	}
	i := slices.IndexFunc(rec.Plan.Steps, func(s state.Step) bool { return s.Name == string(step) })
	if i < 0 || len(rec.Execution.Holds()) > 0 {
		return false
	}
	return GoesOn(rec.Execution.Workflows[t.Workflow].Steps[step].Status, rec.Execution.Blocked(t.Workflow, rec.Plan, i, pa.ledger.Now()))
}

// EndControl ends the trial of a step with its item's end, in the same commit. An
// end that is not final, or lets the item wait, leaves the trial standing.
func (pa *Panel) EndControl(a layout.AttemptRef, unavailable bool) func(*ledger.Record, map[string][]byte) error {
	ref := RefOf(a.Workflow, a.Step)
	if !pa.Current().Disabled(ref) { // the trial may be newer than what is current here
		return nil
	}
	return func(rec *ledger.Record, files map[string][]byte) error {
		_, s := rec.Execution.Find(a.Workflow, a.Step)
		if s == nil || s.Status == state.Waiting || s.Status == state.InProgress {
			return nil
		}
		c, err := pa.ControlsAt(rec.At)
		if err != nil {
			return err
		}
		well := !unavailable && s.Status != state.Failed
		if c.EndTrial(ref, a.Item, a.Workflow, well, pa.ledger.ByEngine().Agent, pa.ledger.Now()) {
			files[layout.ControlsFile], err = c.Encode()
		}
		return err
	}
}

// AlsoFiles lets several add files to one commit.
func AlsoFiles(all ...func(*ledger.Record, map[string][]byte) error) func(*ledger.Record, map[string][]byte) error {
	return func(rec *ledger.Record, files map[string][]byte) error {
		for _, f := range all {
			if f == nil {
				continue
			}
			if err := f(rec, files); err != nil {
				return err
			}
		}
		return nil
	}
}
