package state

import (
	"slices"
	"time"

	"bagpipe/layout"
)

// Migrate moves a workflow of the item to another definition, To; Apply is given
// the one it runs by. Key is called once for each migration it comes after, so
// that no clock decides which is the last, or once.
type Migrate struct {
	Key      KeyFunc
	Workflow string
	To       *Definition
	At       time.Time
	By       string
	Text     string
	Skip     map[layout.Name]string // steps of To not needed, and why
}

func (e Migrate) apply(x *Execution, d *Definition) (Transition, error) {
	w, err := x.find("migrate", e.Workflow, d)
	if err != nil {
		return Transition{}, err
	}
	illegal := &IllegalError{Event: "migrate", Item: x.Item, Workflow: e.Workflow}
	from := w.Status
	switch {
	case e.To.Name != w.Name:
		illegal.Reason = "the new definition is that of workflow " + e.To.Name
	case e.To.Digest == w.Digest:
		illegal.Reason = "runs by that definition already"
	case from == Completed:
		illegal.Reason = "is completed"
	default:
		illegal.Reason = unmappable(w, e.To)
	}
	if illegal.Reason != "" {
		return Transition{}, illegal
	}
	in := Intent{Kind: MigrateIntent, At: e.At, By: e.By, Text: e.Text, Workflow: e.Workflow, Digest: e.To.Digest}
	before := x.standing(e.Workflow, MigrateIntent, MigrateIntent)
	if len(before) == 0 {
		before = []layout.IntentKey{""} // the first comes after none
	}
	if err := x.end(before, e.Key, in); err != nil {
		return Transition{}, err
	}
	for step, why := range e.Skip {
		if w.Skip == nil {
			w.Skip = map[layout.Name]string{}
		}
		if _, there := w.Skip[step]; !there {
			w.Skip[step] = why
		}
	}
	x.settleDigest(e.Workflow)
	x.Compute(e.Workflow, e.To)
	return Transition{Workflow: e.Workflow, From: from, To: w.Status}, nil
}

// unmappable says which step keeps a workflow from going over to another
// definition; the package comment has the rules. Steps are looked at in the order
// of their names, so that the answer is always the same.
func unmappable(w *Workflow, to *Definition) string {
	names := make([]layout.Name, 0, len(w.Steps))
	for name := range w.Steps {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		s := w.Steps[name]
		i := to.index(string(name))
		switch {
		case s.Status == InProgress:
			return "step " + string(name) + " " + s.runningText()
		case i < 0 && len(s.Attempts) > 0:
			return "step " + string(name) + " was attempted, and the new definition has no such step"
		case i < 0 || s.Status != Completed && s.Status != Skipped:
			continue
		}
		for _, p := range to.local[i] {
			if !satisfied(w.Steps[layout.Name(to.Steps[p].Name)], to.Steps[p].Tolerated()) {
				return "step " + string(name) + " is " + string(s.Status) + ", and by the new definition it needs " + to.Steps[p].Name + ", which is not done"
			}
		}
	}
	first := w.Steps[layout.Name(to.Steps[0].Name)]
	if first == nil || first.Status != Completed {
		return "the first step of the new definition, " + to.Steps[0].Name + ", is not the one the workflow was started with"
	}
	return ""
}
