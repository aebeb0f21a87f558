package audit

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// attemptAt is an attempt that one record has and another does not, or not so.
type attemptAt struct {
	workflow string
	step     layout.Name
	key      layout.AttemptKey
	was, is  state.Attempt
	fresh    bool
}

// difference is what a record has more than the one before it.
type difference struct {
	workflows  []string           // in no order, as attempts: no event changes two
	intents    []layout.IntentKey // sorted
	attempts   []attemptAt
	milestones []layout.Name // sorted
}

// differ compares two records; attempts of new workflows are not listed.
func differ(x, y *state.Execution) (d difference) {
	for name, w := range y.Workflows {
		old := x.Workflows[name]
		if old == nil {
			d.workflows = append(d.workflows, name)
			continue
		}
		for step, s := range w.Steps {
			was := old.Steps[step]
			for k, a := range s.Attempts {
				at := attemptAt{workflow: name, step: step, key: k, is: a, fresh: true}
				if was != nil {
					if before, there := was.Attempts[k]; there {
						at.was, at.fresh = before, false
					}
				}
				if at.fresh || !at.was.Same(&at.is) {
					d.attempts = append(d.attempts, at)
				}
			}
		}
	}
	for k := range y.Intents {
		if _, there := x.Intents[k]; !there {
			d.intents = append(d.intents, k)
		}
	}
	for n := range y.Milestones {
		if _, there := x.Milestones[n]; !there {
			d.milestones = append(d.milestones, n)
		}
	}
	slices.Sort(d.intents)
	slices.Sort(d.milestones)
	return d
}

// errNoEvent is a difference that no event leaves.
var errNoEvent = errors.New("no event changes a record so")

// happened is an event, the workflow that it names, and how its commit is worded.
type happened struct {
	event    state.Event
	workflow string // "" for an event of the item
	plan     *state.Definition
	kind     string   // of the intent; "" for a transition of a step
	by       string   // who is told as the agent; "" where the record does not say
	before   []string // workflows that the new version of the item ended
}

// eventOf finds the event that made y of x; d is what y has more, and y may lack what is as in x.
func eventOf(d difference, x, y *state.Execution, plans state.Plans) (happened, error) {
	switch {
	case len(d.workflows) == 1 && len(d.attempts) == 0:
		return startOf(d, y, plans)
	case len(d.workflows) > 0 || len(d.attempts) > 1:
		return happened{}, errNoEvent
	case len(d.attempts) == 1 && len(d.intents) == 0:
		return attemptOf(d, x, plans)
	case len(d.intents) > 0 && len(d.attempts) == 0:
		return intentOf(d, x, y, plans)
	}
	return happened{}, errNoEvent
}

// startOf is the start of a workflow; of a new version of the item, it ends those that failed.
func startOf(d difference, y *state.Execution, plans state.Plans) (happened, error) {
	name := d.workflows[0]
	w := y.Workflows[name]
	plan := plans(w.StartedWith)
	if plan == nil {
		return happened{}, fmt.Errorf("its definition %s is not in the history", w.StartedWith)
	}
	first := w.Steps[layout.Name(plan.Steps[0].Name)]
	if first == nil || len(first.Attempts) != 1 {
		return happened{}, errNoEvent
	}
	k, a, _ := first.Current()
	h := happened{workflow: name, plan: plan, by: a.By, event: state.Start{Workflow: name, Attempt: k, At: w.Created, NotBefore: w.NotBefore,
		Runner: a.Runner, Version: a.Version, By: a.By, StartedBy: w.StartedBy, Skip: w.Skip}}
	for _, i := range d.intents {
		if y.Intents[i].Kind != state.DeactivateIntent {
			return happened{}, errNoEvent
		}
		h.before = append(h.before, string(i))
	}
	return h, nil
}

// attemptOf is a claim, a note, an end, a person's decision, or a step passed over.
func attemptOf(d difference, x *state.Execution, plans state.Plans) (happened, error) {
	at := d.attempts[0]
	a := at.is
	h := happened{workflow: at.workflow, plan: plans(x.Workflows[at.workflow].Digest)}
	switch {
	case at.fresh && a.State == state.InProgress:
		h.event = state.Claim{Workflow: at.workflow, Step: at.step, Attempt: at.key, At: a.Claimed, Runner: a.Runner, Version: a.Version, Unstarted: a.Started.IsZero(), Outside: true, Progress: a.Progress}
	case at.fresh && strings.Contains(a.By, "<"): // a person: NAME <ADDRESS>
		h.by = a.By
		h.event = state.Decide{Workflow: at.workflow, Step: at.step, Attempt: at.key, State: a.State, At: a.Ended, By: a.By, Message: a.Message, Milestones: d.milestones}
	case at.fresh && a.State == state.Skipped && a.By != "":
		h.by = a.By
		h.event = state.Unneeded{Workflow: at.workflow, Step: at.step, Attempt: at.key, At: a.Ended, By: a.By, Why: a.Message}
		x.Around = func(string, layout.Name) (*state.Reason, string) { return nil, a.Message }
	case !at.fresh && at.was.State == state.InProgress && a.State == state.InProgress && a.Progress != nil:
		h.event = state.Note{Workflow: at.workflow, Step: at.step, Attempt: at.key, Progress: *a.Progress}
	case !at.fresh && at.was.State == state.InProgress:
		h.event = state.End{Workflow: at.workflow, Step: at.step, Attempt: at.key, State: a.State, Kind: a.Kind, Started: a.Started, At: a.Ended,
			RetryAt: a.NotBefore, Message: a.Message, Text: a.Text, Milestones: d.milestones, Progress: a.Progress, Yield: a.Yield}
	default:
		return h, errNoEvent
	}
	return h, nil
}

// intentOf is what a person, or an engine, wants.
func intentOf(d difference, x, y *state.Execution, plans state.Plans) (happened, error) {
	k := d.intents[0]
	if i := slices.IndexFunc(d.intents, func(k layout.IntentKey) bool { return y.Intents[k].Kind == state.OwnIntent }); i >= 0 {
		k = d.intents[i]
	}
	in := y.Intents[k]
	h := happened{workflow: in.Workflow, kind: in.Kind, by: in.By}
	if w := x.Workflows[in.Workflow]; w != nil {
		h.plan = plans(w.Digest)
	}
	switch in.Kind {
	case state.HoldIntent:
		h.event = state.Hold{Key: k, At: in.At, By: in.By, Text: in.Text, Answers: string(in.Target)}
	case state.RemarkIntent:
		h.event = state.Remark{Key: k, At: in.At, By: in.By, Text: in.Text}
	case state.DisposeIntent:
		h.event = state.Dispose{Key: k, At: in.At, By: in.By, Text: in.Text, Proposal: string(in.Target)}
	case state.ReleaseIntent:
		h.event = state.Release{Key: newKeys(), At: in.At, By: in.By, Text: in.Text}
	case state.DeactivateIntent:
		h.event = state.Deactivate{Key: k, Workflow: in.Workflow, At: in.At, By: in.By, Text: in.Text}
	case state.ActivateIntent:
		h.event = state.Activate{Key: newKeys(), Workflow: in.Workflow, At: in.At, By: in.By, Text: in.Text}
	case state.CancelIntent:
		h.kind, h.event = "", state.Cancel{Key: k, Workflow: in.Workflow, Step: in.Step, At: in.At, By: in.By, Text: in.Text}
	case state.MigrateIntent:
		to, w := plans(in.Digest), y.Workflows[in.Workflow]
		if to == nil {
			return h, fmt.Errorf("its definition %s is not in the history", in.Digest)
		}
		if w == nil {
			return h, errNoEvent
		}
		h.event = state.Migrate{Key: newKeys(), Workflow: in.Workflow, To: to, At: in.At, By: in.By, Text: in.Text, Skip: w.Skip}
	case state.OwnIntent:
		h.event = state.Own{Key: newKeys(), Site: in.Site, TakeOver: in.Text != "", At: in.At, By: in.By, Text: in.Text}
	case state.LostIntent, state.InternalIntent:
		h.kind, h.event = "", givenUp(d, y)
	case state.RetryIntent, state.ResetIntent:
		h.kind, h.event = "", again(d, x, y, h.plan)
	}
	if h.event == nil || in.Workflow != "" && h.plan == nil {
		return h, errNoEvent
	}
	return h, nil
}

// givenUp is an attempt that is lost, or that Bagpipe itself broke.
func givenUp(d difference, y *state.Execution) state.Event {
	var lost, internal layout.IntentKey
	for _, k := range d.intents {
		switch y.Intents[k].Kind {
		case state.LostIntent:
			lost = k
		case state.InternalIntent:
			internal = k
		}
	}
	l := y.Intents[lost]
	switch {
	case lost == "" || len(d.intents) > 2:
		return nil
	case internal == "":
		return state.Lost{Key: lost, Workflow: l.Workflow, Step: l.Step, Attempt: l.Attempt, At: l.At, By: l.By}
	}
	in := y.Intents[internal]
	return state.Internal{Key: internal, LostKey: lost, Workflow: l.Workflow, Step: l.Step, Attempt: l.Attempt, At: in.At, By: in.By, Text: in.Text}
}

// again is a retry, or the reset of a step and, where others were reset with it, of those
// after it. Of the steps named, it is the first in the definition.
func again(d difference, x, y *state.Execution, plan *state.Definition) state.Event {
	if plan == nil {
		return nil
	}
	in := y.Intents[d.intents[0]]
	steps := map[layout.Name]bool{}
	retries := 0
	for _, k := range d.intents {
		i := y.Intents[k]
		steps[i.Step] = true
		if i.Kind == state.RetryIntent {
			retries++
		}
	}
	_, s := x.Find(in.Workflow, in.Step)
	if retries == 1 && len(d.intents) == 1 && s != nil {
		_, a, _ := s.Current()
		retry := state.Retry{Key: d.intents[0], Workflow: in.Workflow, Step: in.Step, At: in.At, By: in.By, Text: in.Text}
		if a.State != state.InProgress {
			return retry
		}
	}
	for i := range plan.Steps {
		step := layout.Name(plan.Steps[i].Name)
		if steps[step] {
			return state.Reset{Key: newKeys(), Workflow: in.Workflow, Step: step, After: len(steps) > 1, At: in.At, By: in.By, Text: in.Text}
		}
	}
	return nil
}

// onlyResult holds a manifest to what the end of a step makes of the one before: another
// metadata, another inventory, and the quality that quality.json at now comes to; a person's decision makes the latter alone.
func onlyResult(before, manifest []byte, now gitstore.Reader, decided bool) error {
	more := errors.New("it changes more of the manifest than metadata, the inventory and quality")
	if decided {
		more = errors.New("it changes more of the manifest than quality")
	}
	was, errA := layout.DecodeManifest(before)
	is, errB := layout.DecodeManifest(manifest)
	if errA != nil || errB != nil {
		return more
	}
	if !reflect.DeepEqual(was.Quality, is.Quality) {
		q, err := ledger.ReadQuality(now, is.Item)
		if err != nil || q == nil || is.Quality == nil || q.Result != is.Quality.Result || !maps.Equal(q.Levels, is.Quality.Levels) {
			return errors.New("the quality in the manifest is not that of " + layout.QualityJSON)
		}
	}
	if was.Quality = is.Quality; !decided {
		was.Metadata, was.Inventory = is.Metadata, is.Inventory
	}
	if want, err := was.Encode(before); err != nil || !bytes.Equal(want, manifest) {
		return more
	}
	return nil
}

// newKeys draws keys that stand for those of the record until rename gives them theirs.
func newKeys() state.KeyFunc {
	n := 0
	return func() (layout.IntentKey, error) {
		n++
		return layout.IntentKey(fmt.Sprintf("%s%d", drawn, n)), nil
	}
}

const drawn = "new "

// rename gives the intents that an event added the keys that equal ones have in y.
func rename(x, y *state.Execution, fresh []layout.IntentKey) {
	for k, in := range x.Intents {
		if !strings.HasPrefix(string(k), drawn) {
			continue
		}
		for i, other := range fresh {
			if reflect.DeepEqual(y.Intents[other], in) {
				delete(x.Intents, k)
				x.Intents[other] = in
				fresh = slices.Delete(slices.Clone(fresh), i, i+1)
				break
			}
		}
	}
}
