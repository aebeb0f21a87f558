package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"
	"bagpipe/engine/runner"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// The rules are: the end of an item's step is counted when its commit is in the
// index, wherever it was made. When a failure was counted, the threshold of the
// step that failed is looked at, by whoever committed it, and by every run at its
// start and now and then, should that one have died between. From the threshold's
// last failure here until its commit nothing of the step is begun here.

// tally gives what is known of a step; mu is held.
func (c *controls) tally(ref state.Ref) *tally {
	if c.tallies == nil {
		c.tallies = map[state.Ref]*tally{}
	}
	t := c.tallies[ref]
	if t == nil {
		t = &tally{}
		c.tallies[ref] = t
	}
	return t
}

// noteEnds counts the ends of an item's steps that have thresholds.
func (e *Engine) noteEnds(index *queue.Index, it *queue.Item) {
	for r := range it.Runs {
		run := &it.Runs[r]
		for i := range run.Steps {
			if len(run.Steps[i].Ends) == 0 {
				continue
			}
			step := &run.Plan.Steps[i]
			ref := refOf(run.Name, layout.Name(step.Name))
			if e.controls.count(ref, step, it.ID, run.Name, run.Steps[i].Ends) {
				for other := range index.With(queue.Ending) {
					e.recount(ref, other)
				}
			}
		}
	}
}

// recount counts an item's ends of one step.
func (e *Engine) recount(ref state.Ref, it *queue.Item) {
	for r := range it.Runs {
		run := &it.Runs[r]
		if base, _ := state.Instance(run.Name); base != ref.Workflow {
			continue
		}
		for i := range run.Steps {
			if run.Plan.Steps[i].Name == string(ref.Step) && len(run.Steps[i].Ends) > 0 {
				e.controls.count(ref, &run.Plan.Steps[i], it.ID, run.Name, run.Steps[i].Ends)
			}
		}
	}
}

// count adds ends; it answers true when those of all items must be added again.
func (c *controls) count(ref state.Ref, step *state.Step, item layout.ItemID, run string, ends []queue.End) (again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tally(ref)
	again = t.Watch(step.Threshold.Window)
	for _, end := range ends {
		t.Add(runner.End{At: end.At, Key: string(item) + "/" + run + "/" + end.Attempt.String(), Failed: end.Failed})
		if end.Failed && !end.At.Before(t.last) {
			t.last, t.step = end.At, step
		}
	}
	return again
}

// reached looks at a step's threshold, with the failures that are not yet
// committed if pending says so.
func (c *controls) reached(ref state.Ref, step *state.Step, since time.Time, pending bool) (failures, of int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tallies[ref]
	if t == nil || step == nil || step.Threshold == nil {
		return 0, 0, false
	}
	failures, of = t.Count(step.Threshold.Window, since)
	if pending {
		failures += t.pending
	}
	return failures, of, runner.Reached(step.Threshold.Count, failures)
}

// suspend notes a failure that is about to be committed, and resume that it was.
func (c *controls) suspend(ref state.Ref, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally(ref).pending += n
}

// mayRun tells, just before the robot starts, whether its step has been disabled
// since the claim, or is about to be.
func (w *work) mayRun() bool {
	ref, step := refOf(w.attempt.Workflow, w.attempt.Step), w.planStep()
	c := w.e.controls.current().Steps[ref]
	if c.Status == state.StepDisabled {
		return c.Trial != nil && c.Trial.Item == w.attempt.Item
	}
	if step.Threshold == nil || step.Threshold.Count == 0 {
		return true
	}
	_, _, reached := w.e.controls.reached(ref, step, c.At, true)
	return !reached
}

// suspect notes a failure of this step that will be counted, until it is.
func (w *work) suspect() {
	step := w.planStep()
	var later *steps.Later
	var internal *InternalError
	if step.Threshold == nil || step.Threshold.Count == 0 || w.err == nil || errors.As(w.err, &later) ||
		errors.As(w.err, &internal) || errors.Is(w.err, runner.ErrInterrupted) {
		return
	}
	if steps.KindOf(w.err) == steps.System && w.stepState().Attempts < step.Retries {
		return // it is tried again
	}
	w.e.controls.suspend(refOf(w.attempt.Workflow, w.attempt.Step), 1)
	w.suspected = true
}

// checkThreshold looks at the threshold of the step that just ended.
func (w *work) checkThreshold() error {
	ref := refOf(w.attempt.Workflow, w.attempt.Step)
	err := w.e.trip(w.ctx, ref, w.planStep())
	if w.suspected {
		w.e.controls.suspend(ref, -1)
	}
	return err
}

// checkThresholds looks at all of them, as an engine may have died between a
// failure's commit and the threshold's.
func (e *Engine) checkThresholds(ctx context.Context) error {
	c := &e.controls
	c.mu.Lock()
	last := make(map[state.Ref]*state.Step, len(c.tallies))
	for ref, t := range c.tallies {
		last[ref] = t.step
	}
	c.mu.Unlock()
	for ref, step := range last {
		if err := e.trip(ctx, ref, step); err != nil {
			return err
		}
	}
	return nil
}

// trip disables a step whose threshold is reached, or stops the runs. Another
// engine may do so at the same time: then the second finds it done.
func (e *Engine) trip(ctx context.Context, ref state.Ref, step *state.Step) error {
	if _, _, reached := e.controls.reached(ref, step, e.controls.current().Since(ref), false); !reached {
		return nil
	}
	var to state.Control
	_, err := e.store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		c, err := e.controlsAt(r)
		if err != nil {
			return nil, err
		}
		failures, of, reached := e.controls.reached(ref, step, c.Since(ref), false)
		if !reached {
			return nil, nil
		}
		to = e.tripped(step, failures, of)
		if !c.Set(ref, to) {
			return nil, nil
		}
		return e.controlChange(c, ref, to, e.byEngine())
	})
	if err != nil {
		return fmt.Errorf("%s has reached its threshold: %w", ref, err)
	}
	return nil
}

func (e *Engine) tripped(step *state.Step, failures, of int) state.Control {
	now := e.o.Now()
	to := state.Control{Status: state.StepDisabled, At: now, By: e.byEngine().agent, CoolDown: time.Duration(step.CoolDown)}
	to.Text = fmt.Sprintf("%d of its last %d ends failed", failures, of)
	if step.Threshold.Window == 0 {
		to.Text = fmt.Sprintf("it failed %d times", failures)
	}
	switch {
	case step.Threshold.Action == state.ActionTerminate:
		to.Status, to.CoolDown = state.StepStopped, 0
	case to.CoolDown > 0:
		to.Until = now.Add(to.CoolDown)
	}
	return to
}

// controlChange is the commit that says how a step stands from now on.
func (e *Engine) controlChange(c *state.Controls, ref state.Ref, to state.Control, who actor) (*gitstore.Change, error) {
	data, err := c.Encode()
	if err != nil {
		return nil, err
	}
	return &gitstore.Change{Files: map[string][]byte{layout.ControlsFile: data}, Author: who.author,
		Message: message("control: "+string(to.Status)+" "+ref.String(), to.Text, []trailer{
			{"Bagpipe-Control", ref.String()}, {"Bagpipe-To", string(to.Status)}, {"Bagpipe-Agent", who.agent}})}, nil
}

// SetStep disables or enables a step of a workflow for all items, as the acting
// person. It answers false when the step stands so already. Load must have been
// called.
func (e *Engine) SetStep(ctx context.Context, ref state.Ref, status state.ControlStatus, text string) (changed bool, err error) {
	if err := e.checkControllable(ref); err != nil {
		return false, err
	}
	at := e.o.Now()
	if status == state.StepEnabled {
		at = e.enabledAt(ref)
	}
	_, err = e.store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		c, err := e.controlsAt(r)
		if err != nil {
			return nil, err
		}
		to := state.Control{Status: status, At: at, By: e.person(), Text: clip(printable(text), maxMessage)}
		if changed = c.Set(ref, to); !changed {
			return nil, nil
		}
		return e.controlChange(c, ref, to, e.byPerson())
	})
	return changed, err
}

// checkControllable refuses what no workflow has, and what a person does.
func (e *Engine) checkControllable(ref state.Ref) error {
	if _, listed := e.controls.current().Steps[ref]; listed {
		return nil
	}
	manual := false
	for _, p := range e.plansInUse() {
		if p.Name != ref.Workflow {
			continue
		}
		i := slices.IndexFunc(p.Steps, func(s state.Step) bool { return s.Name == string(ref.Step) })
		if i > 0 && !p.Steps[i].Manual {
			return nil
		}
		manual = manual || i >= 0
	}
	if manual {
		return fmt.Errorf("%s is not done by a robot; there is nothing to disable", ref)
	}
	if err := e.checkStepNames(ref.Workflow, string(ref.Step)); err != nil {
		return err
	}
	return fmt.Errorf("%s: expected a workflow's name, not one run of it", ref)
}

// heed notes the thresholds that stop runs, and stops the one at work here.
func (c *controls) heed(now *state.Controls) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.halt == nil {
		return
	}
	for ref, control := range now.Steps {
		if control.Status == state.StepStopped && c.stops[ref] != control.At.UnixMilli() {
			c.stopped[ref] = true
			c.halt()
		}
	}
}

// watch lets halt be called when a threshold stops the runs, from now on; nil ends
// it. What stopped earlier runs does not stop this one.
func (c *controls) watch(halt func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.halt = halt; halt == nil {
		return
	}
	now := c.current() // one that comes later is heeded later
	c.stopped, c.stops = map[state.Ref]bool{}, map[state.Ref]int64{}
	for ref, control := range now.Steps {
		if control.Status == state.StepStopped {
			c.stops[ref] = control.At.UnixMilli()
		}
	}
}

// stoppedBy lists the steps whose thresholds stopped the run.
func (c *controls) stoppedBy() (refs []state.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref := range c.stopped {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, compareRefs)
	return refs
}

func compareRefs(a, b state.Ref) int {
	return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Step, b.Step))
}

// passedOver says why an optional step that is disabled is skipped on this item;
// "" when it is not: the item may be its trial.
func (w *work) passedOver() string {
	if !w.planStep().Optional {
		return ""
	}
	c := w.e.controls.current().Steps[refOf(w.entry.Run, w.entry.Step)]
	open, why := c.Open(w.entry.Item.ID, w.entry.Run, w.e.o.Now(), func(t *state.Trial) bool { return stands(w.e.index, t, w.entry.Step) })
	if open {
		return ""
	}
	return why
}

// passOver skips an optional step that is disabled.
func (e *Engine) passOver(ctx context.Context, id layout.ItemID, workflow string, step layout.Name, why string) error {
	text := ""
	_, err := e.step(ctx, id, workflow, e.byEngine(), why, func(rec *record) (state.Event, error) {
		c, err := e.controlsAt(rec.at)
		if err != nil {
			return nil, err
		}
		_, text = c.Steps[refOf(workflow, step)].Open(id, workflow, e.o.Now(), func(t *state.Trial) bool { return e.trialStands(rec.at, t, step) })
		return state.Unneeded{Workflow: workflow, Step: step, Attempt: rec.execution.NextKey(step, e.id),
			At: e.o.Now(), By: e.byEngine().agent, Why: text}, nil
	}, nil)
	return err
}
