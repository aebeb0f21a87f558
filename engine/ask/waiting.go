package ask

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"bagpipe/engine/claim"
	"bagpipe/engine/control"
	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/queue"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

// namedKeepers is how many of the items that a step waits for are named.
const namedKeepers = 3

// waiting says what one step waits for; open is false when it is done.
func (re *Reasons) waiting(it *queue.Item, run *queue.Run, i int, now time.Time) (w Waiting, open bool) {
	s := &run.Steps[i]
	w = Waiting{Workflow: run.Name, Step: layout.Name(run.Plan.Steps[i].Name), Status: s.Status, Since: s.Since}
	why := it.BlockedAt(run, i, now)
	if why == nil {
		re.placed(&w, it, run, i, now)
		return w, true
	}
	w.Code, w.Why, w.Until = why.Code, why.Text, why.Until
	if w.Code == "done" {
		return w, false
	}
	w.Remedy = re.remedy(it, run, i, now, nil)
	if open = re.worded(&w, it, run, i); !open {
		return w, false
	}
	if folder.SaysGone(s.Message) && (w.Code == "retry" || s.Status == state.Failed) {
		w.Instead = Remedy{Verb: fault.Deactivate, Item: it.ID, Run: run.Name}
	}
	k := re.index.Loaded().Keepers(it.ID, run.Name, i, why.Code, namedKeepers)
	if w.Items = k.Items; !k.Open && k.All > 0 && !strings.Contains(w.Why, " on item ") { // which names it
		w.Why += ": " + itemsText(k.Items, k.All)
	}
	return w, true
}

// waitingBriefly says what the step's own item tells of it, and looks at no other.
func (re *Reasons) waitingBriefly(it *queue.Item, run *queue.Run, i int, now time.Time) (w Waiting, open bool) {
	s := &run.Steps[i]
	w = Waiting{Workflow: run.Name, Step: layout.Name(run.Plan.Steps[i].Name), Status: s.Status, Since: s.Since,
		Code: "ready", Why: "ready", Remedy: Remedy{Verb: fault.Why, Item: it.ID}}
	why := it.BlockedAt(run, i, now)
	if why == nil {
		return w, true
	}
	w.Code, w.Why, w.Until = why.Code, why.Text, why.Until
	switch w.Code {
	case "done":
		return w, false
	case "held", "inactive", "manual", "retry", "running", "date", "failed", control.DisabledCode:
		w.Remedy = re.remedy(it, run, i, now, nil)
	}
	open = re.worded(&w, it, run, i)
	return w, open
}

// worded says more of a reason, of what the item itself tells; open is false when the
// step is done all the same.
func (re *Reasons) worded(w *Waiting, it *queue.Item, run *queue.Run, i int) (open bool) {
	s := &run.Steps[i]
	switch w.Code {
	case "manual":
		w.Why += " since " + layout.FormatTime(s.Since)
	case "retry":
		w.Why = triedText(s, w.Until)
	case "date":
		if !w.Until.IsZero() {
			w.Why += ", and is done by a run from then on"
			if run.Plan.Steps[i].Manual {
				w.Why = state.DateReason(w.Until).Text + ", and then for a person"
			}
		}
	case "running":
		if re.activity.goneFrom(s) {
			w.Why = "was in progress by " + s.Runner + ", which is gone; the next run resumes it"
		}
	case "requires":
		re.prerequisites(w, it, run, i)
	case "failed":
		return re.failedWaiting(w, run, i)
	}
	return true
}

// itemsText names the first of some items, and tells how many there are besides.
func itemsText(ids []layout.ItemID, all int) string {
	var names []string
	for _, id := range ids {
		names = append(names, id.Short())
	}
	text := strings.Join(names, ", ")
	if n := all - len(ids); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// triedText says how a step that is tried again by itself has fared.
func triedText(s *queue.Step, next time.Time) string {
	if reason, asked := strings.CutPrefix(s.Message, (&steps.Later{}).Error()); asked {
		return fmt.Sprintf("is tried again at %s: %s (after %s)", layout.FormatTime(next), reason, attemptsText(s.Attempts))
	}
	at := layout.FormatTime(next) + ": " + s.Message
	failed, try := fmt.Sprintf("%d times", s.Attempts), fmt.Sprintf("try %d", s.Attempts+1)
	switch s.Attempts {
	case 1:
		failed, try = "once", "second try"
	case 2:
		failed, try = "twice", "third try"
	}
	return fmt.Sprintf("failed %s, %s at %s", failed, try, at)
}

func attemptsText(n int) string {
	return layout.Count(n, "attempt")
}

// placed says what is before a step that is ready.
func (re *Reasons) placed(w *Waiting, it *queue.Item, run *queue.Run, i int, now time.Time) {
	p, _ := re.index.Loaded().Place(it.ID, run.Name, i, now, namedKeepers)
	w.Code, w.Before, w.Why, w.Remedy = "ready", p.Before, "ready, and next", Remedy{Verb: fault.Run}
	switch {
	case p.Taken:
		w.Why, w.Remedy = "ready, and taken by this engine", Remedy{}
	case p.Limit != "":
		w.Code, w.Why, w.Items = "limit", "ready, but "+p.Limit, p.Fills
		w.Remedy = re.limited(w, run, p)
	case p.Before > 0:
		w.Why = fmt.Sprintf("ready, %d before it", p.Before)
	}
	if why := re.unmet(run, i); why != "" {
		w.Code, w.Why, w.Remedy = "worker", why, Remedy{}
	}
	if by := re.settings.Current().KeptBy(queue.StepID{Workflow: run.Plan.Name, Step: w.Step}); len(by) > 0 && !p.Taken {
		w.Code, w.Why, w.Remedy = "schedule", fmt.Sprintf("ready, and left to schedule %s (%s)", by[0].Name, by[0].Trigger), Remedy{}
	}
	if run.Plan.Steps[i].External && !p.Taken {
		w.Why, w.Remedy = strings.TrimSuffix(w.Why, ", and next")+"; waits for a program that asks for it", Remedy{}
	}
	if said := run.Steps[i].Message; folder.AwaitsBytes(said, re.ledger.Path(layout.ItemDir(it.ID))) {
		w.Why, w.Remedy = "waits: "+said[strings.Index(said, folder.NotHere):], Remedy{Verb: fault.GetPayload, Item: it.ID}
	}
	for _, cold := range re.activity.coldSteps() {
		if strings.Contains(cold, run.Plan.Name+"/"+string(w.Step)) {
			w.Why += "; " + cold
		}
	}
}

// limited names what fills a limit, and gives the view that tells more of it.
func (re *Reasons) limited(w *Waiting, run *queue.Run, p queue.Placed) Remedy {
	var names []string
	for _, id := range p.Fills {
		name := id.Short()
		if by := re.activity.runnerOf(id, run.Plan.Name, w.Step); by != "" && p.OneStep {
			name += " (by " + by + ")"
		}
		names = append(names, name)
	}
	if len(names) > 0 {
		w.Why += ": " + strings.Join(names, ", ")
		if len(names) == namedKeepers {
			w.Why += ", …"
		}
	}
	switch {
	case p.OneStep:
		return Remedy{Verb: fault.ListRunning, Run: run.Plan.Name, Step: w.Step}
	case len(p.Fills) > 0:
		return Remedy{Verb: fault.Why, Item: p.Fills[0]}
	}
	return Remedy{Verb: fault.Status} // shows what is in progress
}

// runnerOf is who does a step of an item.
func (ac *Activity) runnerOf(id layout.ItemID, workflow string, step layout.Name) string {
	it := ac.index.Loaded().Item(id)
	if it == nil {
		return ""
	}
	for run, i := range it.Steps() {
		if s := &run.Steps[i]; s.Status == state.InProgress && run.Plan.Name == workflow && layout.Name(run.Plan.Steps[i].Name) == step {
			return s.Runner
		}
	}
	return ""
}

// coldSteps are the steps that engines do not claim as their warm-up failed.
func (ac *Activity) coldSteps() []string {
	_, cold, err := ac.engines()
	if err != nil {
		return nil // it only adds to the answer
	}
	return cold
}

// prerequisites says more of the open prerequisite that a step waits for.
func (re *Reasons) prerequisites(w *Waiting, it *queue.Item, run *queue.Run, i int) {
	of, p, ok := openPrerequisite(it, run, i)
	if !ok {
		return
	}
	s := &of.Steps[p]
	name := of.Plan.Steps[p].Name
	if of != run {
		name = of.Plan.Name + "/" + name
	}
	switch {
	case it.Waits(of, p) && s.Blocked.Code == "manual":
		w.Why = fmt.Sprintf("waits for %s, which waits for a person since %s", name, layout.FormatTime(s.Since))
	case s.Status == state.InProgress && re.activity.goneFrom(s):
		w.Why = fmt.Sprintf("waits for %s, which was in progress by %s, which is gone; the next run resumes it", name, s.Runner)
	case s.Status == state.InProgress:
		w.Why = fmt.Sprintf("waits for %s, which is in progress by %s since %s", name, s.Runner, layout.FormatTime(s.Since))
	case s.Status == state.Failed:
		w.Why = fmt.Sprintf("waits for %s, which failed at %s: %s", name, layout.FormatTime(s.Since), s.Message)
	case s.Blocked != nil && s.Blocked.Code != "requires":
		text, between := s.Blocked.Text, ": "
		for _, verb := range []string{"the step is ", "is ", "waits "} {
			if strings.HasPrefix(text, verb) {
				text, between = strings.TrimPrefix(text, "the step "), ", which "
				break
			}
		}
		w.Why = "waits for " + name + between + text
	}
}

// openPrerequisite finds, of what a step requires, the one that is open and stands
// nearest to being done: a person's, one that failed, runs or is blocked by something
// other than a step; or else the first. It may be of another workflow of the item.
func openPrerequisite(it *queue.Item, run *queue.Run, i int) (of *queue.Run, step int, ok bool) {
	look := func(r *queue.Run, p int) bool {
		s := &r.Steps[p]
		if s.Status == state.Completed || s.Status == state.Skipped || s.Status == state.Failed && r.Plan.Steps[p].Tolerated() {
			return false
		}
		if !ok {
			of, step, ok = r, p, true
		}
		near := s.Status != state.Waiting || s.Blocked != nil && s.Blocked.Code != "requires"
		if near {
			of, step = r, p
		}
		return near
	}
	for _, p := range run.Plan.Prerequisites(i) {
		if look(run, p) {
			return of, step, true
		}
	}
	for _, ref := range run.Plan.Foreign(i) {
		for r := len(it.Runs) - 1; r >= 0; r-- { // the last run of it counts
			other := &it.Runs[r]
			if other.Plan.Name != ref.Workflow {
				continue
			}
			for p := range other.Steps {
				if layout.Name(other.Plan.Steps[p].Name) == ref.Step && look(other, p) {
					return of, step, true
				}
			}
			break
		}
	}
	return of, step, ok
}

// tellOnce leaves why a step failed, or is tried again, and what helps, to the line of that step.
func tellOnce(w *Waiting, it *queue.Item, run *queue.Run, i int) {
	switch w.Code {
	case "failed":
		if p, is := stoppedBy(run); is && run.Steps[i].Status != state.Failed {
			w.Why, w.Remedy = fmt.Sprintf("the workflow stands still as %s failed", run.Plan.Steps[p].Name), Remedy{}
		}
	case "requires":
		of, p, ok := openPrerequisite(it, run, i)
		if !ok || of != run {
			return
		}
		if of.Steps[p].Status == state.Failed {
			w.Why, w.Remedy = fmt.Sprintf("waits for %s, which failed", of.Plan.Steps[p].Name), Remedy{}
		} else if b := of.Steps[p].Blocked; b != nil && b.Code == "retry" {
			w.Why, w.Remedy = fmt.Sprintf("waits for %s, which is tried again later", of.Plan.Steps[p].Name), Remedy{}
		}
	}
}

// failedWaiting tells the failure of a step, or of the one that stopped its workflow;
// open is false where it need not succeed.
func (re *Reasons) failedWaiting(w *Waiting, run *queue.Run, i int) (open bool) {
	s := &run.Steps[i]
	switch {
	case s.Status == state.Failed && run.Plan.Steps[i].Tolerated():
		w.Why, w.Remedy = "failed, and need not succeed: "+s.Message, Remedy{}
		return false
	case s.Status == state.Failed:
		w.Why = fmt.Sprintf("failed (%s) at %s after %s: %s", s.Kind, layout.FormatTime(s.Since), attemptsText(s.Attempts), s.Message)
		if w.Remedy.Verb == fault.ScanCatalog || w.Remedy.Verb == fault.AddVersion && w.Remedy.Name == "" { // nothing of the source changed
			w.Again = Remedy{Verb: fault.Retry, Item: w.Remedy.Item, Run: run.Name, Step: w.Step}
			w.Instead = Remedy{Verb: fault.Skip, Item: w.Remedy.Item, Run: run.Name, Step: w.Step}
		} else if w.Remedy.Verb == fault.GetPayload { // or they are put back by hand
			w.Again = Remedy{Verb: fault.Retry, Item: w.Remedy.Item, Run: run.Name, Step: w.Step}
		}
	case run.Internal != "":
	default:
		if p, is := stoppedBy(run); is {
			f := &run.Steps[p]
			w.Why = fmt.Sprintf("the workflow stands still as %s failed at %s: %s", run.Plan.Steps[p].Name, layout.FormatTime(f.Since), f.Message)
		}
	}
	return true
}

// stoppedBy is the step whose failure stopped the workflow.
func stoppedBy(run *queue.Run) (step int, is bool) {
	for p := range run.Steps {
		if run.Steps[p].Status == state.Failed && !run.Plan.Steps[p].Tolerated() {
			return p, true
		}
	}
	return 0, false
}

// unmet says what a step that is placed on workers alone needs of one, where none has it.
func (re *Reasons) unmet(run *queue.Run, i int) string {
	step := &run.Plan.Steps[i]
	set := re.settings.Current().Settings
	p, placed := set.Workers.Placed(run.Plan.Name, step.Name)
	if !placed || !p.Only || step.External {
		return ""
	}
	s, served := re.workers()
	return p.WantOf(step, s.Build).Unmet(s, served)
}

// workers gives what the engine that serves workers told last; served is false where none
// runs.
func (re *Reasons) workers() (s wire.Status, served bool) {
	data, err := disk.ReadFile(re.ledger.Path(wire.StatusFile))
	if err != nil || json.Unmarshal(data, &s) != nil {
		return wire.Status{}, false
	}
	if _, err := layout.ParseEngineID(string(s.Engine)); err != nil {
		return s, false
	}
	alive, err := claim.NewObserver(re.ledger.Root, re.ledger.Host, re.ledger.Clock).Alive(s.Engine)
	return s, err == nil && alive
}
