package ask

import (
	"time"

	"bagpipe/engine/control"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// remedy is the command that lets a step go on: of what it waits for through other
// steps and other items, the one that would be given first. before are the items that
// were come from. "" where there is none.
func (an *Answers) remedy(it *queue.Item, run *queue.Run, i int, now time.Time, before []layout.ItemID) string {
	item, on := it.ID.Short(), it.ID.Short()+" "+run.Name+"/"+run.Plan.Steps[i].Name
	why := it.BlockedAt(run, i, now)
	if why == nil {
		return "bagpipe run"
	}
	switch why.Code {
	case "held":
		return "bagpipe release " + item
	case "inactive":
		return "bagpipe workflow activate " + item + " " + run.Name
	case "manual":
		return "bagpipe step complete " + on
	case "retry":
		return "bagpipe step retry " + on
	case control.DisabledCode:
		return "bagpipe step enable " + run.Plan.Name + "/" + run.Plan.Steps[i].Name
	case "running":
		if an.goneFrom(&run.Steps[i]) {
			return "bagpipe run"
		}
	case "date":
		if why.Until.IsZero() || run.Plan.Steps[i].Manual { // no date that can be read; a person's
			return "bagpipe step complete " + on
		}
		return "bagpipe run"
	case "requires":
		return an.remedyOfRequired(it, run, i, now, before)
	case "failed":
		return remedyOfFailed(it, run, i)
	default:
		return an.remedyOfOthers(it, run, i, now, why.Code, before)
	}
	return ""
}

// mostRequired is how many steps that require each other are followed.
const mostRequired = 1000

// remedyOfRequired follows what a step requires. Definitions have no circles; those of
// two workflows may have one, whose steps wait for each other for good.
func (an *Answers) remedyOfRequired(it *queue.Item, run *queue.Run, i int, now time.Time, before []layout.ItemID) string {
	for range mostRequired {
		of, p, ok := openPrerequisite(it, run, i)
		if !ok {
			return startsForeign(it, run, i)
		}
		if why := it.BlockedAt(of, p, now); why == nil || why.Code != "requires" {
			return an.remedy(it, of, p, now, before)
		}
		run, i = of, p
	}
	return ""
}

// startsForeign starts the workflow of which the item has none, and a step requires one.
func startsForeign(it *queue.Item, run *queue.Run, i int) string {
	for _, ref := range run.Plan.Foreign(i) {
		has := false
		for r := range it.Runs {
			has = has || it.Runs[r].Plan.Name == ref.Workflow
		}
		if !has {
			return "bagpipe start " + it.ID.Short() + " " + ref.Workflow
		}
	}
	return ""
}

func remedyOfFailed(it *queue.Item, run *queue.Run, i int) string {
	if run.Steps[i].Status != state.Failed {
		if run.Internal != "" {
			return "bagpipe workflow activate " + it.ID.Short() + " " + run.Name
		}
		p, is := stoppedBy(run)
		if !is {
			return ""
		}
		i = p
	}
	return "bagpipe step retry " + it.ID.Short() + " " + run.Name + "/" + run.Plan.Steps[i].Name
}

// remedyOfOthers follows the first of the other items that a step waits for.
func (an *Answers) remedyOfOthers(it *queue.Item, run *queue.Run, i int, now time.Time, code string, before []layout.ItemID) string {
	k := an.index.Loaded().Keepers(it.ID, run.Name, i, code, 1)
	if k.Open {
		return "bagpipe batch close " + it.Batch
	}
	for _, b := range before {
		if len(k.Items) > 0 && b == k.Items[0] {
			return "" // was come from
		}
	}
	var other *queue.Item
	if len(k.Items) > 0 {
		other = an.index.Loaded().Item(k.Items[0])
	}
	switch {
	case other != nil && other.Broken == "":
		return an.remedyOfItem(other, now, append(before, it.ID))
	case it.Batch != "" && code == "batch":
		return "bagpipe batch show " + it.Batch
	}
	return ""
}

// remedyOfItem is the command that lets an item go on: of a step that failed, or else
// of the first that is not done.
func (an *Answers) remedyOfItem(it *queue.Item, now time.Time, before []layout.ItemID) string {
	for r := range it.Runs {
		run := &it.Runs[r]
		if p, is := stoppedBy(run); is && run.Status == state.Failed {
			return remedyOfFailed(it, run, p)
		}
	}
	for run, i := range it.Steps() {
		if s := run.Steps[i].Status; s == state.Waiting || s == state.InProgress {
			return an.remedy(it, run, i, now, before)
		}
	}
	return ""
}
