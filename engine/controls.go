package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"
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
type controls struct {
	now     atomic.Pointer[state.Controls] // in force; not changed, but replaced
	unread  func()                         // a version was committed that cannot be read
	changed func()                         // controls came into force

	mu      sync.Mutex // guards the rest
	tallies map[state.Ref]*tally
	told    string              // of a version that cannot be read
	stopped map[state.Ref]bool  // by thresholds, since the run began
	halt    func()              // called when one is; nil: not
	stops   map[state.Ref]int64 // the stops there were when the run began, in ms
}

// tally is what the threshold of one step looks at.
type tally struct {
	runner.Tally
	last    time.Time   // of the newest failure,
	step    *state.Step // the step as its item is pinned to
	pending int         // failures not yet committed
}

func (c *controls) current() *state.Controls {
	if now := c.now.Load(); now != nil {
		return now
	}
	return &state.Controls{}
}

// refOf names the step of a run of a workflow over all items.
func refOf(run string, step layout.Name) state.Ref {
	base, _ := state.Instance(run)
	return state.Ref{Workflow: base, Step: step}
}

// loadControls reads the controls in force.
func (e *Engine) loadControls(ctx context.Context, v gitstore.View) error {
	data, err := readOptional(v, layout.ControlsFile)
	if err != nil {
		return err
	}
	c, bad := state.DecodeControls(data)
	if bad != nil {
		if c, err = e.lastControls(ctx, v); err != nil {
			return err
		}
		e.warnControls(bad)
	}
	e.setControls(c)
	return nil
}

// lastControls finds the newest version in the history that can be read.
func (e *Engine) lastControls(ctx context.Context, v gitstore.View) (*state.Controls, error) {
	for c, err := range e.store.History(ctx, gitstore.HistoryOptions{Path: layout.ControlsFile, From: v.Commit()}) {
		if err != nil {
			return nil, fmt.Errorf("look for a sound version of %s: %w", layout.ControlsFile, err)
		}
		old, err := e.store.At(c.Hash)
		if err != nil {
			return nil, err
		}
		data, err := readOptional(old, layout.ControlsFile)
		if err != nil {
			return nil, err
		}
		if sound, err := state.DecodeControls(data); err == nil {
			return sound, nil
		}
	}
	return &state.Controls{}, nil
}

// warnControls tells of a version that cannot be read, once.
func (e *Engine) warnControls(bad error) {
	c := &e.controls
	c.mu.Lock()
	again := c.told == bad.Error()
	c.told = bad.Error()
	c.mu.Unlock()
	if !again {
		e.o.Warn(fmt.Sprintf("%v; this version was pushed; the last sound one stays in force", bad))
	}
}

// noteControls takes in a change of the file; an observer.
func (e *Engine) noteControls(a gitstore.Advance) {
	for _, c := range a.Changes {
		if c.Path != layout.ControlsFile {
			continue
		}
		if sound, err := state.DecodeControls(c.Data); err == nil {
			e.setControls(sound)
		} else {
			e.controls.unread()
		}
	}
}

// setControls puts controls in force.
func (e *Engine) setControls(c *state.Controls) {
	e.controls.now.Store(c)
	e.controls.heed(c)
	e.controls.changed()
}

// recontrol brings the items in the index in line with controls that came into force.
func (e *Engine) recontrol() {
	e.noting.Lock()
	defer e.noting.Unlock()
	e.mu.Lock()
	index := e.index
	e.mu.Unlock()
	if index != nil {
		e.control(index)
	}
}

// control brings the items in the index in line with the controls.
func (e *Engine) control(index *queue.Index) {
	c := e.controls.current()
	for _, id := range index.WithSteps(func(s queue.StepID) bool { return c.Disabled(state.Ref{Workflow: s.Workflow, Step: s.Step}) }) {
		if it := index.Item(id); it != nil {
			if now := e.controlled(index, it); now != it {
				index.Put(now)
			}
		}
	}
}

// offerTrials puts the items of steps that may be tried into the queue again: one
// whose claim was refused for another's trial is not handed out by itself.
func (e *Engine) offerTrials() {
	for _, c := range e.controls.current().Steps {
		if c.Status == state.StepDisabled && !c.Until.IsZero() && !e.o.Now().Before(c.Until) {
			e.recontrol()
			return
		}
	}
}

// controlled is an item as the controls have it. A disabled optional step is not
// blocked by them: it is skipped when it could start.
func (e *Engine) controlled(index *queue.Index, it *queue.Item) *queue.Item {
	c := e.controls.current()
	return it.Controlled(func(run *queue.Run, i int) *state.Reason {
		step := &run.Plan.Steps[i]
		set, listed := c.Steps[refOf(run.Name, layout.Name(step.Name))]
		if !listed || set.Status != state.StepDisabled || step.Optional {
			return nil
		}
		open, why := set.Open(it.ID, run.Name, time.Time{}, func(t *state.Trial) bool {
			return stands(index, t, layout.Name(step.Name))
		})
		if open {
			return nil
		}
		reason := &state.Reason{Code: disabledCode, Text: why}
		if set.Trial == nil || !stands(index, set.Trial, layout.Name(step.Name)) {
			reason.Until = set.Until
		}
		return reason
	})
}

const disabledCode = "disabled"

// stands tells whether a trial's item goes on with its step.
func stands(index *queue.Index, t *state.Trial, step layout.Name) bool {
	it := index.Item(t.Item)
	if it == nil || it.Broken != "" || it.Held {
		return false
	}
	for r := range it.Runs {
		run := &it.Runs[r]
		for i := range run.Steps {
			if s := &run.Steps[i]; run.Name == t.Workflow && run.Plan.Steps[i].Name == string(step) {
				return goesOn(s.Status, s.Own())
			}
		}
	}
	return false
}

func goesOn(status state.Status, why *state.Reason) bool {
	return status == state.InProgress || status == state.Waiting && (why == nil || why.Code == "retry")
}

// trialMoved looks, after an item changed, whether it is a trial that does not
// stand any more; then others may be tried.
func (e *Engine) trialMoved(index *queue.Index, id layout.ItemID) {
	for ref, c := range e.controls.current().Steps {
		if c.Status == state.StepDisabled && c.Trial != nil && c.Trial.Item == id && !stands(index, c.Trial, ref.Step) {
			e.control(index)
			return
		}
	}
}

// controlsAt reads the controls where an edit is made. What cannot be read is
// written over with what is in force; a newer version's file is not.
func (e *Engine) controlsAt(r gitstore.Reader) (*state.Controls, error) {
	data, err := readOptional(r, layout.ControlsFile)
	if err != nil {
		return nil, err
	}
	c, err := state.DecodeControls(data)
	var newer *layout.SchemaError
	switch {
	case err == nil:
		return c, nil
	case errors.As(err, &newer):
		return nil, err
	}
	sound, err := e.controls.current().Encode()
	if err != nil {
		return nil, err
	}
	return state.DecodeControls(sound)
}

// claimControl refuses the claim of a disabled step, or makes it the step's trial
// in the same commit.
func (e *Engine) claimControl(a *Attempt) func(*record, map[string][]byte) error {
	ref := refOf(a.Workflow, a.Step)
	return func(rec *record, files map[string][]byte) error {
		c, err := e.controlsAt(rec.at)
		var newer *layout.SchemaError
		if errors.As(err, &newer) && !e.controls.current().Disabled(ref) {
			return nil // what could be read last is in force
		}
		if err != nil {
			return err
		}
		if !c.Disabled(ref) {
			return nil
		}
		open, why := c.Steps[ref].Open(a.Item, a.Workflow, e.o.Now(), func(t *state.Trial) bool { return e.trialStands(rec.at, t, a.Step) })
		if !open {
			return &state.IllegalError{Event: "claim", Item: a.Item, Workflow: a.Workflow, Step: a.Step, Reason: why}
		}
		if !c.Try(ref, a.Item, a.Workflow, e.o.Now()) {
			return nil
		}
		files[layout.ControlsFile], err = c.Encode()
		return err
	}
}

// trialStands is stands, by the records where an edit is made.
func (e *Engine) trialStands(r gitstore.Reader, t *state.Trial, step layout.Name) bool {
	rec, err := e.read(r, t.Item, t.Workflow)
	if err != nil {
		return false // gone or broken
	}
	i := slices.IndexFunc(rec.plan.Steps, func(s state.Step) bool { return s.Name == string(step) })
	if i < 0 || len(rec.execution.Holds()) > 0 {
		return false
	}
	return goesOn(rec.execution.Workflows[t.Workflow].Steps[step].Status, rec.execution.Blocked(t.Workflow, rec.plan, i, e.o.Now()))
}

// endControl ends the trial of a step with its item's end, in the same commit. An
// end that is not final, or lets the item wait, leaves the trial standing.
func (e *Engine) endControl(a *Attempt, unavailable bool) func(*record, map[string][]byte) error {
	ref := refOf(a.Workflow, a.Step)
	if t := e.controls.current().Steps[ref].Trial; t == nil || t.Item != a.Item {
		return nil
	}
	return func(rec *record, files map[string][]byte) error {
		_, s := rec.execution.Find(a.Workflow, a.Step)
		if s == nil || s.Status == state.Waiting || s.Status == state.InProgress {
			return nil
		}
		c, err := e.controlsAt(rec.at)
		if err != nil {
			return err
		}
		well := !unavailable && s.Status != state.Failed
		if c.EndTrial(ref, a.Item, a.Workflow, well, e.byEngine().agent, e.o.Now()) {
			files[layout.ControlsFile], err = c.Encode()
		}
		return err
	}
}

// alsoFiles lets several add files to one commit.
func alsoFiles(all ...func(*record, map[string][]byte) error) func(*record, map[string][]byte) error {
	return func(rec *record, files map[string][]byte) error {
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
