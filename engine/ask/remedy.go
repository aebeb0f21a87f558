package ask

import (
	"strings"
	"time"

	"bagpipe/engine/control"
	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Remedy is what lets a step go on. The zero Remedy is none.
type Remedy = fault.Remedy

// letGo is what lets a held item go on. Copies that are damaged are to be mended, and of values in
// conflict one is to be chosen: a release would leave them so, and tell no one any more.
func letGo(it *queue.Item) Remedy { return ItemRow{Item: it.ID, HeldBy: it.HeldBy}.LetGo() }

// LetGo is what lets the held item go on.
func (it ItemRow) LetGo() Remedy {
	switch {
	case strings.Contains(it.HeldBy, ": "+state.HeldByFixity+"content: "), strings.Contains(it.HeldBy, ": "+state.HeldByFixity+"source: "):
		return Remedy{Verb: fault.PutBack, Item: it.Item} // a mend replaces copies on targets alone
	case strings.Contains(it.HeldBy, ": "+state.HeldByFixity+state.NoSoundCopy):
		return Remedy{Verb: fault.PutBackCopy, Item: it.Item}
	case strings.Contains(it.HeldBy, ": "+state.HeldByFixity):
		return Remedy{Verb: fault.Mend, Item: it.Item}
	case strings.Contains(it.HeldBy, ": "+state.HeldByConflict):
		return Remedy{Verb: fault.ShowConflict, Item: it.Item}
	}
	return Remedy{Verb: fault.Release, Item: it.Item}
}

// remedy is the act that lets a step go on. A step that waits for other steps or other
// items has the remedy of the first of them; before are the items already followed.
func (re *Reasons) remedy(it *queue.Item, run *queue.Run, i int, now time.Time, before []layout.ItemID) Remedy {
	step := layout.Name(run.Plan.Steps[i].Name)
	at := func(v fault.Verb) Remedy { return Remedy{Verb: v, Item: it.ID, Run: run.Name, Step: step} }
	why := it.BlockedAt(run, i, now)
	if why == nil {
		return Remedy{Verb: fault.Run}
	}
	switch why.Code {
	case "held":
		return letGo(it)
	case "inactive":
		return Remedy{Verb: fault.Activate, Item: it.ID, Run: run.Name}
	case "manual":
		return at(fault.Complete)
	case "retry":
		if folder.SaysAbsent(run.Steps[i].Message) {
			return Remedy{Verb: fault.GetPayload, Item: it.ID}
		}
		return at(fault.Retry)
	case control.DisabledCode:
		return Remedy{Verb: fault.Enable, Run: run.Plan.Name, Step: step}
	case "running":
		if re.activity.goneFrom(&run.Steps[i]) {
			return Remedy{Verb: fault.Run}
		}
	case "date":
		if why.Until.IsZero() || run.Plan.Steps[i].Manual { // no date that can be read; a person's
			return at(fault.Complete)
		}
		return Remedy{Verb: fault.Run}
	case "requires":
		return re.remedyOfRequired(it, run, i, now, before)
	case "failed":
		return remedyOfFailed(re.ledger, it, run, i)
	default:
		return re.remedyOfOthers(it, run, i, now, why.Code, before)
	}
	return Remedy{}
}

// mostRequired is how many steps that require each other are followed.
const mostRequired = 1000

// remedyOfRequired follows what a step requires. Definitions have no circles; those of
// two workflows may have one, whose steps wait for each other for good.
func (re *Reasons) remedyOfRequired(it *queue.Item, run *queue.Run, i int, now time.Time, before []layout.ItemID) Remedy {
	for range mostRequired {
		of, p, ok := openPrerequisite(it, run, i)
		if !ok {
			return startsForeign(it, run, i)
		}
		if why := it.BlockedAt(of, p, now); why == nil || why.Code != "requires" {
			return re.remedy(it, of, p, now, before)
		}
		run, i = of, p
	}
	return Remedy{}
}

// startsForeign starts the workflow of which the item has none, and a step requires one.
func startsForeign(it *queue.Item, run *queue.Run, i int) Remedy {
	for _, ref := range run.Plan.Foreign(i) {
		has := false
		for r := range it.Runs {
			has = has || it.Runs[r].Plan.Name == ref.Workflow
		}
		if !has {
			return Remedy{Verb: fault.Start, Item: it.ID, Run: ref.Workflow}
		}
	}
	return Remedy{}
}

func remedyOfFailed(l *ledger.Ledger, it *queue.Item, run *queue.Run, i int) Remedy {
	if run.Steps[i].Status != state.Failed {
		if run.Internal != "" {
			return Remedy{Verb: fault.Activate, Item: it.ID, Run: run.Name}
		}
		p, is := stoppedBy(run)
		if !is {
			return Remedy{}
		}
		i = p
	}
	if r := addChanged(l, it, run.Steps[i].Message); r.Verb != fault.None {
		return r
	}
	if said := run.Steps[i].Message; folder.SaysAbsent(said) {
		return Remedy{Verb: fault.GetPayload, Item: it.ID, From: folder.KeptAt(said)}
	}
	verb := fault.Retry
	if run.Steps[i].Kind == state.ContentKind && !run.Plan.Steps[i].Manual { // a robot would find the same again
		if place := placeOf(l, it.ID); place != nil {
			return Remedy{Verb: fault.ScanCatalog, Item: it.ID, Name: string(place.Catalog)}
		}
		if it.Parent == nil {
			return Remedy{Verb: fault.AddVersion, Item: it.ID}
		}
		verb = fault.Skip
	}
	return Remedy{Verb: verb, Item: it.ID, Run: run.Name, Step: layout.Name(run.Plan.Steps[i].Name)}
}

// placeOf is where the object of an item stays that is in a catalog; nil: it was taken in.
func placeOf(l *ledger.Ledger, id layout.ItemID) *layout.Place {
	_, rec, err := l.ReadTip(id, "")
	if err != nil {
		return nil
	}
	return rec.Manifest.Source.Place
}

// addChanged takes a source in as the item's next version, for which a step failed as it
// changed after it was taken in; none where that was not why.
func addChanged(l *ledger.Ledger, it *queue.Item, failure string) Remedy {
	path, is := folder.ChangedSource(failure)
	if !is || it.Parent != nil { // a part has no versions of its own
		return Remedy{}
	}
	return Remedy{Verb: fault.AddVersion, Item: it.ID, Name: l.Path(layout.ItemDir(it.ID) + "/" + path)}
}

// remedyOfOthers follows the first of the other items that a step waits for.
func (re *Reasons) remedyOfOthers(it *queue.Item, run *queue.Run, i int, now time.Time, code string, before []layout.ItemID) Remedy {
	k := re.index.Loaded().Keepers(it.ID, run.Name, i, code, 1)
	if k.Open {
		return Remedy{Verb: fault.CloseBatch, Name: it.Batch}
	}
	for _, b := range before {
		if len(k.Items) > 0 && b == k.Items[0] {
			return Remedy{} // was come from
		}
	}
	var other *queue.Item
	if len(k.Items) > 0 {
		other = re.index.Loaded().Item(k.Items[0])
	}
	switch {
	case other != nil && other.Broken == "":
		return re.remedyOfItem(other, now, append(before, it.ID))
	case it.Batch != "" && code == "batch":
		return Remedy{Verb: fault.ShowBatch, Name: it.Batch}
	}
	return Remedy{}
}

// remedyOfItem is the act that lets an item go on: of a step that failed, or else
// of the first that is not done.
func (re *Reasons) remedyOfItem(it *queue.Item, now time.Time, before []layout.ItemID) Remedy {
	for r := range it.Runs {
		run := &it.Runs[r]
		if p, is := stoppedBy(run); is && run.Status == state.Failed {
			return remedyOfFailed(re.ledger, it, run, p)
		}
	}
	for run, i := range it.Steps() {
		if s := run.Steps[i].Status; s == state.Waiting || s == state.InProgress {
			return re.remedy(it, run, i, now, before)
		}
	}
	return Remedy{}
}
