package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/runner"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// The rules are: the end of an item's step is counted when its commit is in the
// index, wherever it was made. When a failure was counted, the threshold of the
// step that failed is looked at, by whoever committed it, and by every run at its
// start and now and then, should that one have died between. From the threshold's
// last failure here until its commit nothing of the step is begun here.

// tally gives what is known of a step; mu is held.
func (c *Panel) tally(ref state.Ref) *tally {
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

// Count adds ends; it answers true when those of all items must be added again. own reports whether attempts with an identifier
// are this engine's: those of the workers that it lent to are.
func (c *Panel) Count(ref state.Ref, step *state.Step, item layout.ItemID, run string, ends []queue.End, own func(layout.EngineID) bool) (again bool) {
	now := c.deployed(ref.Workflow, step)
	threshold := now.Threshold
	if threshold == nil || now.CountsPer() == state.PerInstance {
		return false
	}
	if now.CountsPer() == state.PerEngine {
		ends = slices.DeleteFunc(slices.Clone(ends), func(e queue.End) bool { return !own(e.Attempt.Engine) })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tally(ref)
	again = t.Watch(threshold.Window)
	for _, end := range ends {
		t.Add(runner.End{At: end.At, Key: string(item) + "/" + run + "/" + end.Attempt.String(), Failed: end.Failed})
		if end.Failed && !end.At.Before(t.last) {
			t.last, t.step = end.At, step
		}
	}
	return again
}

// Reached looks at a step's threshold, with the failures that are not yet
// committed if pending says so.
func (c *Panel) Reached(ref state.Ref, step *state.Step, since time.Time, pending bool) (failures, of int, ok bool) {
	step = c.deployed(ref.Workflow, step)
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tallies[ref]
	if t == nil || step == nil || step.Threshold == nil || step.CountsPer() == state.PerInstance {
		return 0, 0, false
	}
	failures, of = t.Count(step.Threshold.Window, since)
	if pending {
		failures += t.pending
	}
	return failures, of, runner.Reached(step.Threshold.Count, failures)
}

// Suspend notes a failure that is about to be committed, and resume that it was.
func (c *Panel) Suspend(ref state.Ref, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally(ref).pending += n
}

// CheckThresholds looks at all of them, as an engine may have died between a
// failure's commit and the threshold's.
func (pa *Panel) CheckThresholds(ctx context.Context) error {
	c := pa
	c.mu.Lock()
	last := make(map[state.Ref]*state.Step, len(c.tallies))
	for ref, t := range c.tallies {
		last[ref] = t.step
	}
	c.mu.Unlock()
	for ref, step := range last {
		if err := pa.Trip(ctx, ref, step); err != nil {
			return err
		}
	}
	return nil
}

// Trip disables a step whose threshold is reached, or stops the runs. Another
// engine may do so at the same time: then the second finds it done.
func (pa *Panel) Trip(ctx context.Context, ref state.Ref, step *state.Step) error {
	step = pa.deployed(ref.Workflow, step)
	if _, _, reached := pa.Reached(ref, step, pa.Current().Since(ref), false); !reached {
		return nil
	}
	var to state.Control
	_, err := pa.ledger.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		c, err := pa.ControlsAt(r)
		if err != nil {
			return nil, err
		}
		failures, of, reached := pa.Reached(ref, step, c.Since(ref), false)
		if !reached {
			return nil, nil
		}
		to = pa.tripped(step, failures, of)
		if !c.Set(ref, to) {
			return nil, nil
		}
		return pa.ControlChange(c, ref, to, pa.ledger.ByEngine())
	})
	if err != nil {
		return fmt.Errorf("%s has reached its threshold: %w", ref, err)
	}
	return nil
}

func (pa *Panel) tripped(step *state.Step, failures, of int) state.Control {
	now := pa.ledger.Now()
	to := state.Control{Status: state.StepDisabled, At: now, By: pa.ledger.ByEngine().Agent, CoolDown: time.Duration(step.CoolDown)}
	to.Text = fmt.Sprintf("%d of its last %d ends failed", failures, of)
	if step.Threshold.Window == 0 {
		to.Text = "it failed " + layout.Count(failures, "time")
	}
	return pa.acted(step, to)
}

// acted fills in what the threshold of a step does.
func (pa *Panel) acted(step *state.Step, to state.Control) state.Control {
	switch {
	case step.Threshold.Action == state.ActionTerminate:
		to.Status, to.CoolDown = state.StepStopped, 0
		if step.CountsPer() != state.PerWorkspace {
			to.Engine = pa.ledger.ID
		}
	case to.CoolDown > 0:
		to.Until = to.At.Add(to.CoolDown)
	}
	return to
}

// TripFor does what the threshold of a step says, for what was counted elsewhere: the
// instances of the step's program here reached it again and again.
func (pa *Panel) TripFor(ctx context.Context, ref state.Ref, step *state.Step, why string) error {
	_, err := pa.ledger.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		c, err := pa.ControlsAt(r)
		if err != nil {
			return nil, err
		}
		to := pa.acted(step, state.Control{Status: state.StepDisabled, At: pa.ledger.Now(), By: pa.ledger.ByEngine().Agent, Text: why, CoolDown: time.Duration(step.CoolDown)})
		if !c.Set(ref, to) {
			return nil, nil
		}
		return pa.ControlChange(c, ref, to, pa.ledger.ByEngine())
	})
	if err != nil {
		return fmt.Errorf("%s has reached its threshold: %w", ref, err)
	}
	return nil
}

// ControlChange is the commit that says how a step stands from now on.
func (pa *Panel) ControlChange(c *state.Controls, ref state.Ref, to state.Control, who ledger.Actor) (*gitstore.Change, error) {
	data, err := c.Encode()
	if err != nil {
		return nil, err
	}
	return &gitstore.Change{Files: map[string][]byte{layout.ControlsFile: data}, Author: who.Author,
		Message: ledger.Message("control: "+string(to.Status)+" "+ref.String(), to.Text, []ledger.Trailer{
			{"Bagpipe-Control", ref.String()}, {"Bagpipe-To", string(to.Status)}, {"Bagpipe-Agent", who.Agent}})}, nil
}

// heed notes the thresholds that stop runs, and stops the one at work here.
func (c *Panel) heed(now *state.Controls) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref, control := range now.Steps {
		if c.stopsRun(ref, control) {
			c.stopped[ref] = true
			c.halt()
		}
	}
}

// stopsRun reports whether a control ends the run at work here; mu is held.
func (c *Panel) stopsRun(ref state.Ref, control state.Control) bool {
	return c.halt != nil && control.Status == state.StepStopped && (control.Engine == "" || control.Engine == c.ledger.ID) && c.stops[ref] != control.At.UnixMilli()
}

// Watch lets halt be called when a threshold stops the runs, from now on; nil ends
// it. What stopped earlier runs does not stop this one.
func (c *Panel) Watch(halt func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.halt = halt; halt == nil {
		return
	}
	now := c.Current() // one that comes later is heeded later
	c.stopped, c.stops = map[state.Ref]bool{}, map[state.Ref]int64{}
	for ref, control := range now.Steps {
		if control.Status == state.StepStopped {
			c.stops[ref] = control.At.UnixMilli()
		}
	}
}

// StoppedBy lists the steps whose thresholds stopped the run.
func (c *Panel) StoppedBy() (refs []state.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref := range c.stopped {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, CompareRefs)
	return refs
}

func CompareRefs(a, b state.Ref) int {
	return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Step, b.Step))
}

// Tripped reports whether a step is out of the flow, or its threshold ends this run: from when
// that is in force, as from then on the failures before it count no longer.
func (c *Panel) Tripped(ref state.Ref) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Current()
	return c.stopped[ref] || c.stopsRun(ref, now.Steps[ref]) || now.Disabled(ref)
}
