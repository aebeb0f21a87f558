package groups

import (
	"cmp"
	"slices"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/layout"
)

// Keepers are all the items for which step n of a run waits; open tells that the batch is.
func (o *Groups) Keepers(it *packed.Item, run *packed.Run, n int, code string) (of []layout.ItemID, open bool) {
	switch code {
	case packed.BatchCode:
		return o.batchKeepers(it, run, n), !o.batches.closed[it.Batch]
	case packed.ChildrenCode:
		for _, f := range o.families[it.ID] {
			if f.holds() != "" && f.keeps(it, run, n) {
				of = append(of, f.named(func(k *kin) bool { return !k.done && !(k.failed && f.policy.tolerated) })...)
			}
		}
	case packed.SiblingsCode:
		if it.Parent != nil {
			of = o.family(familyOf(it)).named(func(k *kin) bool { return k.failed })
		}
	case packed.PoolCode:
		if it.Parent != nil {
			of = o.family(familyOf(it)).named(func(k *kin) bool { return k.alive || k.open })
		}
	}
	return of, false
}

func (o *Groups) batchKeepers(it *packed.Item, run *packed.Run, n int) (of []layout.ItemID) {
	g := o.batches.gathering(it, run, n)
	if now := o.answer(it.Batch, g); now.open {
		if now.first != it.ID {
			of = append(of, now.first)
		}
		return of
	}
	var absent []member
	for id, m := range g.members {
		if !m.here && id != it.ID {
			absent = append(absent, m)
		}
	}
	slices.SortFunc(absent, func(a, b member) int { return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id, b.id)) })
	for _, m := range absent {
		of = append(of, m.id)
	}
	return of
}

// named are the members of which something holds: those that failed, then the oldest.
func (f *family) named(is func(*kin) bool) (of []layout.ItemID) {
	var kins []*kin
	for _, k := range f.members {
		if is(k) {
			kins = append(kins, k)
		}
	}
	slices.SortFunc(kins, func(a, b *kin) int {
		if a.failed != b.failed {
			if a.failed {
				return -1
			}
			return 1
		}
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
	for _, k := range kins {
		of = append(of, k.id)
	}
	return of
}
