package pages

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"bagpipe/engine/disposal"
	"bagpipe/engine/warrant"
	"bagpipe/layout"
)

type disposalsView struct {
	Rows []proposal
	All  int
}

// proposal is a proposal with the first of its items.
type proposal struct {
	*disposal.Row
	Listed []disposedItem
	Left   int // that are not gone
}

type disposedItem struct {
	Item layout.ItemID
	warrant.Described
	Waits string
	Gone  *time.Time // nil: it is still there
	Begun bool
}

// disposals shows the last proposals to remove items for good.
func (p capabilities) disposals(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	const most, items = 50, 100
	if err := p.d.Whole(r.Context()); err != nil {
		return "", nil, err
	}
	rows, all, err := disposal.Newest(r.Context(), p.d.Disposal, most)
	v := disposalsView{All: all}
	for _, row := range rows {
		one := proposal{Row: row}
		for _, id := range slices.Sorted(maps.Keys(row.Items)) {
			at, begun := row.Gone[id]
			if at == nil {
				one.Left++
			}
			if len(one.Listed) < items {
				one.Listed = append(one.Listed, disposedItem{id, row.Items[id], row.Waits[id], at, begun})
			}
		}
		v.Rows = append(v.Rows, one)
	}
	return "disposals", v, err
}
