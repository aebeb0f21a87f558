package state

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// Progressed reports whether now has a completed attempt that before has not: only
// with one may the content have changed.
func Progressed(before, now *Execution) bool {
	return now.any(func(workflow string, step layout.Name, k layout.AttemptKey, a Attempt) bool {
		was, there := before.attempt(workflow, step, k)
		return a.State == Completed && (!there || was.State != Completed)
	})
}

// Ended reports whether a robot's attempt came to its end since before: with it, what it found of the object's quality
// is recorded.
func Ended(before, now *Execution) bool {
	return now.any(func(workflow string, step layout.Name, k layout.AttemptKey, a Attempt) bool {
		was, there := before.attempt(workflow, step, k)
		return a.Runner != "" && a.State != InProgress && (!there || was.State == InProgress)
	})
}

// Forged says which attempts in engine's name are in now as engine never wrote
// them, before being all that it wrote: each attempt has one writer.
func Forged(before, now *Execution, engine layout.EngineID) (breaches []string) {
	now.any(func(workflow string, step layout.Name, k layout.AttemptKey, a Attempt) bool {
		was, there := before.attempt(workflow, step, k)
		if k.Engine == engine && (!there || was.State != a.State) {
			breaches = append(breaches, fmt.Sprintf("added or ended attempt %s (%s) of %s/%s in the name of the engine that runs here", k, a.State, workflow, step))
		}
		return false
	})
	slices.Sort(breaches)
	return breaches
}

// Person is who made a commit that no engine did; zero: an engine did.
type Person struct {
	Address string // <ADDRESS>
	Hand    bool   // it was not merely brought along, as by a rebase
}

// Unclaimed says which attempts one commit adds or ends that no event does: by a robot, and
// ended without a claim in a commit before; in a person's own commit, by a robot at all; and
// in the name of another person; and which intents it adds so. Merges are held against the join of their parents.
func Unclaimed(before, now *Execution, by Person) (breaches []string) {
	now.any(func(workflow string, step layout.Name, k layout.AttemptKey, a Attempt) bool {
		was, there := before.attempt(workflow, step, k)
		if there && was.State == a.State {
			return false
		}
		w := now.Workflows[workflow]
		starts := before.Workflows[workflow] == nil && a.State == Completed && a.Started.Equal(w.Created) && a.Ended.Equal(w.Created)
		at := strings.LastIndexByte(a.By, '<')
		why := ""
		switch {
		case by.Address != "" && at >= 0 && a.By[at:] != by.Address:
			why = "in the name of " + a.By
		case at >= 0, starts && !by.Hand, a.By != "" && a.State == Skipped && !by.Hand:
		case by.Hand:
			why = "which is a robot's"
		case !there && !a.open():
			why = "which no commit before claimed"
		}
		if why != "" {
			breaches = append(breaches, fmt.Sprintf("added or ended attempt %s (%s) of %s/%s, %s", k, a.State, workflow, step, why))
		}
		return false
	})
	for k, in := range now.Intents {
		if _, there := before.Intents[k]; there || by.Address == "" {
			continue
		}
		at := strings.LastIndexByte(in.By, '<')
		switch {
		case at >= 0 && in.By[at:] != by.Address:
			breaches = append(breaches, fmt.Sprintf("added %s %s in the name of %s", in.Kind, k, in.By))
		case at < 0 && by.Hand && !isEngine(in.By): // nobody's; an engine's comes back by the revert of a revert
			breaches = append(breaches, fmt.Sprintf("added %s %s in the name of %q, which is not theirs", in.Kind, k, in.By))
		}
	}
	slices.Sort(breaches)
	return breaches
}

// isEngine reports whether an intent says that an engine, or the join of two histories, added it.
func isEngine(by string) bool {
	name, _, _ := strings.Cut(by, " at ")
	_, pid, named := strings.Cut(name, ":")
	return by == "bagpipe join" || named && pid != "" && strings.Trim(pid, "0123456789") == ""
}

// Admitted reports whether a record is as the start of an item's first workflow leaves it.
func Admitted(x *Execution) bool {
	n := 0
	done := x.any(func(workflow string, _ layout.Name, _ layout.AttemptKey, a Attempt) bool {
		n++
		created := x.Workflows[workflow].Created
		return n > 1 || a.State != Completed || !a.Started.Equal(created) || !a.Ended.Equal(created)
	})
	return !done && n == 1 && len(x.Workflows) == 1 && len(x.Intents) == 0
}

// Misstated says which statuses, as data has them, do not follow from what it tells of. They are
// for the reader; one that older versions wrote, or that is left out, is none.
func Misstated(data []byte, since time.Time, plans Plans) (wrong []string) {
	x, err := Decode(data)
	if err != nil {
		return nil
	}
	x.Since = since
	x.Recompute(plans)
	differs := func(what string, written gjson.Result, is Status) {
		if written.Exists() && is != "" && written.String() != string(is) && !(is == Scheduled && written.String() == string(InProgress)) {
			wrong = append(wrong, fmt.Sprintf("wrote %s as %.20q, which is %s", what, written.String(), is))
		}
	}
	flows := gjson.GetBytes(data, "workflows")
	flows.ForEach(func(name, flow gjson.Result) bool {
		w := x.Workflows[name.String()]
		if w == nil || plans(w.Digest) == nil {
			return true
		}
		differs(name.String(), flow.Get("status"), w.Status)
		flow.Get("steps").ForEach(func(step, of gjson.Result) bool {
			if s := w.Steps[layout.Name(step.String())]; s != nil {
				differs(name.String()+"/"+step.String(), of.Get("status"), s.Status)
			}
			return true
		})
		return true
	})
	return wrong
}

// Answered reports whether a hold was placed in answer to the commit.
func (x *Execution) Answered(commit string) bool {
	for _, i := range x.Intents {
		if i.Kind == HoldIntent && string(i.Target) == commit {
			return true
		}
	}
	return false
}

// Recompute writes the statuses of all workflows whose definition is there.
func (x *Execution) Recompute(plans Plans) {
	of := x
	if !hasMoving(x.Intents) { // then they need not be asked for each status
		bare := *x
		bare.Intents = nil
		of = &bare
	}
	for name, w := range of.Workflows {
		if d := plans(w.Digest); d != nil {
			of.Compute(name, d)
		}
	}
}

// hasMoving reports whether some intents may bear on a status.
func hasMoving(intents map[layout.IntentKey]Intent) bool {
	for _, i := range intents {
		switch i.Kind {
		case HoldIntent, ReleaseIntent, RemarkIntent, OwnIntent:
		default:
			return true
		}
	}
	return false
}

// Breaches joins what was found into one sentence, bounded.
func Breaches(list []string) string {
	const most = 5
	if len(list) > most {
		list = append(list[:most:most], fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(list, "; ")
}

// InputsOf is the digest of what a step is given by now: by which definition, what was dropped,
// and what the steps made that it rests on.
func InputsOf(x *Execution, d *Definition, workflow string, step layout.Name, dropped string) string {
	of := []string{"plan " + d.Digest, "step " + string(step), "dropped " + dropped}
	at := d.index(string(step))
	w := x.Workflows[workflow]
	for i := range d.Steps {
		name := layout.Name(d.Steps[i].Name)
		if w == nil || i == at || !slices.Contains(d.After(i), at) || w.Steps[name] == nil {
			continue
		}
		if done := x.done(workflow, name, w.Steps[name]); len(done) > 0 {
			of = append(of, "of "+string(name)+" "+w.Steps[name].Attempts[done[len(done)-1]].Outputs)
		}
	}
	slices.Sort(of[3:])
	sum := sha256.Sum256([]byte(strings.Join(of, "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Divergence is a step that two attempts completed with other outputs, though they were given
// the same. The later one counts.
type Divergence struct {
	Workflow string              `json:"workflow"`
	Step     layout.Name         `json:"step"`
	Attempts []layout.AttemptKey `json:"-"`
	// Stale are steps that were done with what the other attempt made.
	Stale []layout.Name `json:"stale"`
}

// Divergences lists those that stand, by workflow and step.
func Divergences(x *Execution, plans Plans, dropped string) (all []Divergence) {
	for _, name := range x.Names() {
		w := x.Workflows[name]
		for _, step := range slices.Sorted(maps.Keys(w.Steps)) {
			outputs := map[string]string{} // the first, by inputs
			d := Divergence{Workflow: name, Step: step, Stale: []layout.Name{}}
			for _, k := range x.done(name, step, w.Steps[step]) {
				a := w.Steps[step].Attempts[k]
				was, known := outputs[a.Inputs]
				if outputs[a.Inputs] = a.Outputs; a.Inputs != "" && known && was != a.Outputs {
					d.Attempts = append(d.Attempts, k)
				}
			}
			if len(d.Attempts) == 0 {
				continue
			}
			if plan := plans(w.Digest); plan != nil {
				d.Stale = append(d.Stale, staleAfter(x, plan, name, step, dropped)...)
			}
			all = append(all, d)
		}
	}
	return all
}

// staleAfter lists the steps after one that were not done with what counts by now.
func staleAfter(x *Execution, plan *Definition, workflow string, step layout.Name, dropped string) (stale []layout.Name) {
	at := plan.index(string(step))
	if at < 0 {
		return nil
	}
	for _, i := range plan.After(at) {
		name := layout.Name(plan.Steps[i].Name)
		_, s := x.Find(workflow, name)
		if s == nil {
			continue
		}
		done := x.done(workflow, name, s)
		if len(done) == 0 {
			continue
		}
		if a := s.Attempts[done[len(done)-1]]; a.Inputs != "" && a.Inputs != InputsOf(x, plan, workflow, name, dropped) {
			stale = append(stale, name)
		}
	}
	return stale
}

// OnlyLacks reports whether a record has nothing but what one of some others has as well.
func OnlyLacks(now *Execution, of ...*Execution) bool {
	some := func(has func(x *Execution) bool) bool { return slices.ContainsFunc(of, has) }
	for k, in := range now.Intents {
		if !some(func(x *Execution) bool { return sameIntent(x, k, in) }) {
			return false
		}
	}
	for k, at := range now.Milestones {
		if !some(func(x *Execution) bool { return x.Milestones[k].Equal(at) && !at.IsZero() }) {
			return false
		}
	}
	for name, w := range now.Workflows {
		if !some(func(x *Execution) bool { return x.Workflows[name] != nil && x.Workflows[name].head() == w.head() }) {
			return false
		}
	}
	return !now.any(func(workflow string, step layout.Name, k layout.AttemptKey, a Attempt) bool {
		return !some(func(x *Execution) bool {
			was, there := x.attempt(workflow, step, k)
			return there && string(was.encode(nil)) == string(a.encode(nil))
		})
	})
}

func sameIntent(x *Execution, k layout.IntentKey, in Intent) bool {
	was, there := x.Intents[k]
	return there && string(was.encode(nil)) == string(in.encode(nil))
}

// Reversal is what somebody means who took away, by git revert, what a record told of, and
// changed nothing else: ends of attempts, attempts, and intents that another kind of intent
// ends.
type Reversal struct {
	Intents  []layout.IntentKey
	Attempts []AttemptPlace
}

// AttemptPlace is where an attempt stands in a record.
type AttemptPlace struct {
	Workflow string
	Step     layout.Name
	Attempt  layout.AttemptKey
}

// Reverted gives what a record lacks of the one before; ok reports whether that is all that
// differs.
func Reverted(before, now *Execution) (r Reversal, ok bool) {
	for k, in := range now.Intents {
		if !sameIntent(before, k, in) {
			return r, false
		}
	}
	for k, at := range now.Milestones {
		if !before.Milestones[k].Equal(at) {
			return r, false
		}
	}
	if len(now.Workflows) != len(before.Workflows) {
		return r, false
	}
	for name, w := range now.Workflows {
		if was := before.Workflows[name]; was == nil || was.head() != w.head() {
			return r, false
		}
	}
	made := now.any(func(workflow string, step layout.Name, k layout.AttemptKey, a Attempt) bool {
		was, there := before.attempt(workflow, step, k)
		return !there || !follows(a, was)
	})
	if made {
		return r, false
	}
	before.any(func(workflow string, step layout.Name, k layout.AttemptKey, a Attempt) bool {
		if is, there := now.attempt(workflow, step, k); !there || is.State != a.State {
			r.Attempts = append(r.Attempts, AttemptPlace{workflow, step, k})
		}
		return false
	})
	slices.SortFunc(r.Attempts, func(a, b AttemptPlace) int {
		return strings.Compare(a.Workflow+"/"+string(a.Step)+"/"+a.Attempt.String(), b.Workflow+"/"+string(b.Step)+"/"+b.Attempt.String())
	})
	for _, k := range slices.Sorted(maps.Keys(before.Intents)) {
		if _, there := now.Intents[k]; !there {
			r.Intents = append(r.Intents, k)
		}
	}
	return r, len(r.Intents)+len(r.Attempts) > 0
}

// RevertedBy begins the text of an intent that a revert means; the commit follows. A revert of
// that in turn takes away what the intent ended along with it.
const RevertedBy = "reverted by commit "

// Revert adds to x the intents that a reversal means: a release for a hold, a hold for a
// release, an activate for a deactivate and the other way round, a reset for what an attempt
// did. It is an *IllegalError where x has gone on so that one of them means nothing any more,
// or where nothing takes such a change back; x may then be half changed.
func Revert(x *Execution, r Reversal, plans Plans, key KeyFunc, at time.Time, by, text string) error {
	late := func(reason string) error {
		return &IllegalError{Event: "revert", Item: x.Item, Reason: reason}
	}
	taken := func(k layout.IntentKey) bool { return slices.Contains(r.Intents, k) }
	for _, k := range r.Intents {
		in, there := x.Intents[k]
		end := Intent{At: at, By: by, Text: text, Workflow: in.Workflow}
		var err error
		switch {
		case !there:
			err = late("what it takes away is not there")
		case in.Kind == HoldIntent && slices.ContainsFunc(r.Intents, func(o layout.IntentKey) bool { return x.Intents[o].Kind == ReleaseIntent && x.Intents[o].Target == k }),
			in.Kind == DeactivateIntent && slices.ContainsFunc(r.Intents, func(o layout.IntentKey) bool { return x.Intents[o].Kind == ActivateIntent && x.Intents[o].Target == k }),
			(in.Kind == ReleaseIntent || in.Kind == ActivateIntent) && taken(in.Target) && !strings.HasPrefix(in.Text, RevertedBy):
			continue // both are taken away, and together they mean nothing
		case in.Kind == HoldIntent && !slices.Contains(x.Holds(), k):
			err = late("the hold was released since")
		case in.Kind == HoldIntent:
			end.Kind = ReleaseIntent
			err = x.end([]layout.IntentKey{k}, key, end)
		case in.Kind == DeactivateIntent && !slices.Contains(x.Deactivations(in.Workflow), k):
			err = late("the workflow was activated since")
		case in.Kind == DeactivateIntent:
			end.Kind = ActivateIntent
			err = x.end([]layout.IntentKey{k}, key, end)
		case in.Kind == ReleaseIntent && len(x.Holds()) > 0, in.Kind == ActivateIntent && len(x.Deactivations(in.Workflow)) > 0:
			continue // it stands still, or again
		case in.Kind == ReleaseIntent, in.Kind == ActivateIntent:
			if end.Kind = HoldIntent; in.Kind == ActivateIntent {
				end.Kind = DeactivateIntent
			}
			var again layout.IntentKey
			if again, err = key(); err == nil {
				x.intend(again, end)
			}
		default:
			err = late("a " + in.Kind + " is not taken back so")
		}
		if err != nil {
			return err
		}
	}
	x.Recompute(plans)
	for _, p := range r.Attempts {
		w, s := x.Find(p.Workflow, p.Step)
		if s == nil || !stands(x, p, s) {
			continue // a later try took its place, or it is reset already
		}
		d := plans(w.Digest)
		if d == nil {
			return late("the definition that " + p.Workflow + " runs by is not there")
		}
		if _, err := Apply(x, d, Reset{Key: key, Workflow: p.Workflow, Step: p.Step, At: at, By: by, Text: text}); err != nil {
			return err
		}
	}
	x.Recompute(plans)
	return nil
}

// stands reports whether an attempt is why its step has the status that it has.
func stands(x *Execution, p AttemptPlace, s *StepRecord) bool {
	last, _, _ := s.Current()
	return slices.Contains(x.done(p.Workflow, p.Step, s), p.Attempt) || last == p.Attempt && (s.Status == InProgress || s.Status == Failed)
}

// Told reports whether some intent has the text.
func Told(x *Execution, text string) bool {
	for _, in := range x.Intents {
		if in.Text == text {
			return true
		}
	}
	return false
}
