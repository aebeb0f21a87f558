package pages

import (
	"bagpipe/engine/fault"
	"bagpipe/layout"
)

// way is what a page has for a remedy: a button, or a link to another page.
type way struct {
	To   string // below the base
	Act  string // what the button asks for; "": it is a link
	Word string

	Workflow string
	Step     layout.Name
	Back     string // the page that the act leads back to
}

// helps is the way of a remedy for the account that looks; nil: the page has none, or not for this account.
func helps(f frame, r fault.Remedy) *way {
	w, ok := wayOf(r)
	if here := w.To == f.Here; !ok || w.Act == "" && here || w.Act != "" && !f.Acts {
		return nil
	}
	w.Back = f.Here
	return &w
}

// itemActs are the acts on an item, or on a run or a step of it, by the remedy that is one.
var itemActs = map[fault.Verb]struct{ act, word string }{
	fault.Release: {"release", "Release it"}, fault.Start: {"start", "Start"}, fault.Activate: {"activate", "Activate"},
	fault.Deactivate: {"deactivate", "Deactivate"}, fault.Retry: {"retry", "Retry"}, fault.Complete: {"complete", "Complete"}, fault.Skip: {"skip", "Skip"},
}

func wayOf(r fault.Remedy) (w way, ok bool) {
	if a, is := itemActs[r.Verb]; is {
		w = way{To: "items/" + string(r.Item) + "/acts", Act: a.act, Word: a.word, Workflow: r.Run, Step: r.Step}
		if w.Step != "" {
			w.Word += " " + string(w.Step)
		} else if w.Workflow != "" {
			w.Word += " " + w.Workflow
		}
		return w, r.Item != "" && (r.Verb != fault.Start || r.Run != "")
	}
	switch r.Verb {
	case fault.Show, fault.Why:
		w = way{To: "items/" + string(r.Item), Word: "Show the item"}
	case fault.ListChildren:
		w = way{To: "items?" + query("parent", r.Item), Word: "Its parts"}
	case fault.FailedChildren:
		w = way{To: "items?" + query("parent", r.Item, "status", "failed"), Word: "Its parts that failed"}
	case fault.ShowBatch:
		w = way{To: "batches/" + r.Name, Word: "Show the batch"}
	case fault.ShowWorkflow:
		w = way{To: "workflows/" + r.Run, Word: "Show the workflow"}
	case fault.ShowFailures:
		w = way{To: "failures", Word: "Show the failures"}
	}
	return w, w.To != ""
}
