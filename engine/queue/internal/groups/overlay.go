package groups

import (
	"fmt"
	"slices"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// tellFamilies lays over others what has changed for them with an item.
func (o *Groups) tellFamilies(it *packed.Item) {
	if it.Parent != nil {
		o.tellFamily(o.family(familyOf(it)))
	}
	for _, f := range o.families[it.ID] {
		o.tellFamily(f)
	}
}

func (o *Groups) tellFamily(f *family) {
	all := f.policy != f.toldPolicy
	if all {
		f.toldPolicy = f.policy
		f.rebuild()
	}
	moved, stop := f.settle(), f.stops()
	if all || stop != f.toldStop {
		f.toldStop = stop
		for id := range f.members {
			o.items.Again(id)
		}
	} else {
		for _, id := range moved {
			o.items.Again(id)
		}
	}
	if text := f.holds(); text != f.toldParent {
		f.toldParent = text
		o.items.Again(f.parent)
	}
}

func (f *family) stops() bool { return f.policy.stop && f.failed > 0 }

// holds says why the parent waits; "" when it does not.
func (f *family) holds() string {
	if !f.policy.last {
		return ""
	}
	all := max(f.made, len(f.members))
	missing := all - len(f.members)
	undone := all - f.done
	if f.policy.tolerated {
		undone -= f.failed
	}
	if undone <= 0 {
		return ""
	}
	text := fmt.Sprintf("waits for %d of %d children", undone, all)
	if f.failed > 0 {
		text += fmt.Sprintf(", %d failed", f.failed)
	}
	if missing > 0 {
		text += fmt.Sprintf(", the records of %d are not there", missing)
	}
	return text
}

// overlayFamily lays over an item's steps what follows from its family, and from those
// it is the parent of.
func (o *Groups) overlayFamily(it *packed.Item) {
	if it.Parent != nil {
		o.overlayChild(it)
	}
	for _, f := range o.families[it.ID] {
		if text := f.holds(); text != "" {
			f.overlayParent(it, &state.Reason{Code: packed.ChildrenCode, Text: text})
		}
	}
}

func (o *Groups) overlayChild(it *packed.Item) {
	f := o.family(familyOf(it))
	k := f.members[it.ID]
	var why *state.Reason
	switch {
	case f.stops():
		why = &state.Reason{Code: packed.SiblingsCode, Text: fmt.Sprintf("another child of %s failed, and %s has siblings: stop", f.parent.Short(), f.id.step)}
	case f.policy.pool > 0 && k != nil && k.begins && !k.open:
		why = &state.Reason{Code: packed.PoolCode, Text: fmt.Sprintf("waits for its place: %s lets %d children of %s be under way at once", f.id.step, f.policy.pool, f.parent.Short())}
	default:
		return
	}
	for run, i := range it.Steps() {
		s := &run.Steps[i]
		if s.Soft() && (why.Code == packed.SiblingsCode || s.ByRecord() == nil || s.ByRecord().Code != "manual") {
			s.Bar(why)
		}
	}
}

// overlayParent bars the steps that need the family's.
func (f *family) overlayParent(it *packed.Item, why *state.Reason) {
	for run, i := range it.Steps() {
		if s := &run.Steps[i]; s.Soft() && f.keeps(it, run, i) {
			s.Bar(why)
		}
	}
}

// keeps reports whether the family bars a step of its parent, once its own record lets
// it start.
func (f *family) keeps(it *packed.Item, run *packed.Run, i int) bool {
	base, _ := state.Instance(f.id.run)
	return run.Name == f.id.run && needs(run.Plan, i, f.id.step) ||
		slices.Contains(run.Plan.Foreign(i), state.Ref{Workflow: base, Step: f.id.step}) && it.Latest(base) == f.id.run
}

func needs(plan *state.Definition, i int, step layout.Name) bool {
	return slices.ContainsFunc(plan.Prerequisites(i), func(p int) bool { return layout.Name(plan.Steps[p].Name) == step })
}
