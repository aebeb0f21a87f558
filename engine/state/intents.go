package state

import (
	"slices"
	"time"

	"bagpipe/layout"
)

// Holds gives the keys of the holds that no release has ended, oldest first.
func (x *Execution) Holds() []layout.IntentKey {
	return x.standing("", HoldIntent, ReleaseIntent)
}

// Deactivations gives the intents that keep a workflow from all queues.
func (x *Execution) Deactivations(workflow string) []layout.IntentKey {
	return x.standing(workflow, DeactivateIntent, ActivateIntent)
}

// InternalErrors gives the intents that make a workflow failed although none of
// its steps is.
func (x *Execution) InternalErrors(workflow string) []layout.IntentKey {
	return x.standing(workflow, InternalIntent, ActivateIntent)
}

// standing gives the intents of one kind that none of another kind has ended, in
// order.
func (x *Execution) standing(workflow, kind, ender string) (keys []layout.IntentKey) {
	for k, i := range x.Intents {
		if i.Kind == kind && i.Workflow == workflow && !x.ended(k, ender) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func (x *Execution) ended(intent layout.IntentKey, ender string) bool {
	for _, i := range x.Intents {
		if i.Kind == ender && i.Target == intent {
			return true
		}
	}
	return false
}

// lost reports whether an intent declares the attempt lost.
func (x *Execution) lost(workflow string, step layout.Name, k layout.AttemptKey) bool {
	return x.named(LostIntent, workflow, step, k)
}

// TakenBack reports whether a reset takes back that very attempt.
func (x *Execution) TakenBack(workflow string, step layout.Name, k layout.AttemptKey) bool {
	return x.named(ResetIntent, workflow, step, k)
}

func (x *Execution) named(kind, workflow string, step layout.Name, k layout.AttemptKey) bool {
	for _, i := range x.Intents {
		if i.Kind == kind && i.Workflow == workflow && i.Step == step && i.Attempt == k {
			return true
		}
	}
	return false
}

// Lost reports whether the attempt lost its claim: an intent says so, or a later
// attempt stands beside it.
func (x *Execution) Lost(workflow string, step layout.Name, k layout.AttemptKey) bool {
	if x.lost(workflow, step, k) {
		return true
	}
	_, s := x.Find(workflow, step)
	if s == nil {
		return false
	}
	current, _, ok := s.Current()
	return ok && current.Compare(k) > 0 && s.Attempts[k].State == InProgress
}

// What the text of a hold begins with that a check of copies placed, or a join.
const (
	HeldByFixity   = "fixity: "
	NoSoundCopy    = "no copy is sound: " // follows HeldByFixity where no copy is known to be sound any more
	HeldByConflict = "two histories changed what describes the item: "
)

// Deaths is how many engines in a row died while they were at a step, since it ended, was given back
// or a person let it be tried again.
func Deaths(x *Execution, workflow string, step layout.Name) (n int) {
	_, s := x.Find(workflow, step)
	if s == nil {
		return 0
	}
	after := x.floor(workflow, step)
	for _, k := range slices.Backward(s.Keys()) {
		if k.Compare(after) <= 0 || !died(x, workflow, step, k, s.Attempts[k].Runner) {
			break
		}
		n++
	}
	return n
}

// died reports whether another engine than its own declared an attempt lost.
func died(x *Execution, workflow string, step layout.Name, k layout.AttemptKey, own string) bool {
	for _, i := range x.Intents {
		if i.Kind == LostIntent && i.Workflow == workflow && i.Step == step && i.Attempt == k && i.By != own {
			return true
		}
	}
	return false
}

// floor is the highest attempt a retry or a reset names; failures up to it no
// longer count.
func (x *Execution) floor(workflow string, step layout.Name) (last layout.AttemptKey) {
	for _, i := range x.Intents {
		if (i.Kind == RetryIntent || i.Kind == ResetIntent) && i.Workflow == workflow && i.Step == step && i.Attempt.Compare(last) > 0 {
			last = i.Attempt
		}
	}
	return last
}

// LetAgain reports whether a person let a step be tried again, or the item or its
// workflow go on, and no attempt was made since. A retry names the attempt it is
// about; of a release only its time tells, which for what this is asked is enough.
func (x *Execution) LetAgain(workflow string, step layout.Name) bool {
	w, s := x.Find(workflow, step)
	if s == nil || len(x.Intents) == 0 {
		return false
	}
	if floor := x.floor(workflow, step); !floor.IsZero() {
		if k, _, ok := s.Current(); !ok || k.Compare(floor) <= 0 {
			return true
		}
	}
	var let time.Time
	for _, i := range x.Intents {
		if (i.Kind == ReleaseIntent || i.Kind == ActivateIntent && i.Workflow == workflow) && i.At.After(let) {
			let = i.At
		}
	}
	if let.IsZero() {
		return false
	}
	for _, other := range w.Steps {
		for _, a := range other.Attempts {
			if !a.Claimed.Before(let) || !a.Ended.Before(let) {
				return false
			}
		}
	}
	return true
}

// settleDigest finds the definition a workflow runs by: the one of the last
// migration, or the one it was started with.
func (x *Execution) settleDigest(workflow string) {
	w := x.Workflows[workflow]
	w.Digest = w.StartedWith
	if moves := x.standing(workflow, MigrateIntent, MigrateIntent); len(moves) > 0 {
		w.Digest = x.Intents[moves[len(moves)-1]].Digest
	}
}

func (x *Execution) intend(k layout.IntentKey, i Intent) {
	if x.Intents == nil {
		x.Intents = map[layout.IntentKey]Intent{}
	}
	x.Intents[k] = i
}
