package queue

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/layout"
)

// Compare says how two indexes differ in what they say of items at now; nothing when
// they agree. It looks at every item, and gives some differences at most.
func (v View) Compare(o View, now time.Time) (diff []string) {
	const most = 20
	ids := append(v.s.ids(), o.s.ids()...)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		a, b := v.Item(id), o.Item(id)
		if what := difference(a, b, now); what != "" {
			if diff = append(diff, fmt.Sprintf("item %s: %s", id, what)); len(diff) == most {
				break
			}
		}
	}
	return diff
}

func (x *store) ids() (ids []layout.ItemID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.table.Each(0, packed.Pages, func(bits uint64, _ []byte) { ids = append(ids, layout.ItemIDOf(bits)) })
	return ids
}

func difference(a, b *Item, now time.Time) string {
	switch {
	case a == nil:
		return "is missing in the first"
	case b == nil:
		return "is missing in the second"
	}
	a.Settle(now)
	b.Settle(now)
	if len(a.Runs) != len(b.Runs) {
		return fmt.Sprintf("has %d runs and %d", len(a.Runs), len(b.Runs))
	}
	for r := range a.Runs {
		for i := range a.Runs[r].Steps {
			if i < len(b.Runs[r].Steps) && !reflect.DeepEqual(a.Runs[r].Steps[i], b.Runs[r].Steps[i]) {
				return fmt.Sprintf("%s/%s is %+v, and %+v", a.Runs[r].Name, a.Runs[r].Plan.Steps[i].Name, a.Runs[r].Steps[i], b.Runs[r].Steps[i])
			}
		}
	}
	if !reflect.DeepEqual(a, b) {
		return fmt.Sprintf("is %+v, and %+v", *a, *b)
	}
	return ""
}
