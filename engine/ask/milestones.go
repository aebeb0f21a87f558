package ask

import (
	"cmp"
	"slices"
	"time"

	"bagpipe/engine/queue"
	"bagpipe/layout"
)

// MilestoneRow is how many items reached a milestone.
type MilestoneRow struct {
	Milestone layout.Name `json:"milestone"`
	Items     int         `json:"items"`
	First     time.Time   `json:"first"`
	Last      time.Time   `json:"last"`
}

// SpanRow is how long items took from one milestone to another.
type SpanRow struct {
	From   layout.Name `json:"from"`
	To     layout.Name `json:"to"`
	Items  int         `json:"items"`
	Median float64     `json:"median"` // seconds
	P90    float64     `json:"p90"`    // seconds
}

// Milestones are how many, and how long between any two.
type Milestones struct {
	Items      int            `json:"items"` // looked at
	Milestones []MilestoneRow `json:"milestones"`
	Spans      []SpanRow      `json:"spans"`
}

// Milestones counts the milestones of the items that fit f, and measures between those
// named by from and to; "" is any. A span is counted for the items that reached both, in
// that order.
func (li *Lists) Milestones(f Filter, from, to layout.Name) (Milestones, error) {
	m := Milestones{Milestones: []MilestoneRow{}, Spans: []SpanRow{}}
	rows := map[layout.Name]*MilestoneRow{}
	spans := map[[2]layout.Name][]float64{}
	fitting, err := li.selected(f)
	if err != nil {
		return m, err
	}
	for it := range fitting {
		m.Items++
		countMilestones(it, rows)
		for a, start := range it.Milestones {
			for b, end := range it.Milestones {
				if a != b && !end.Before(start) && (from == "" || from == a) && (to == "" || to == b) {
					spans[[2]layout.Name{a, b}] = append(spans[[2]layout.Name{a, b}], end.Sub(start).Seconds())
				}
			}
		}
	}
	for _, r := range rows {
		m.Milestones = append(m.Milestones, *r)
	}
	slices.SortFunc(m.Milestones, func(a, b MilestoneRow) int {
		return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.Milestone, b.Milestone))
	})
	for pair, took := range spans {
		slices.Sort(took)
		m.Spans = append(m.Spans, SpanRow{From: pair[0], To: pair[1], Items: len(took), Median: quantile(took, 0.5), P90: quantile(took, 0.9)})
	}
	place := func(n layout.Name) int {
		return slices.IndexFunc(m.Milestones, func(r MilestoneRow) bool { return r.Milestone == n })
	}
	slices.SortFunc(m.Spans, func(a, b SpanRow) int {
		return cmp.Or(cmp.Compare(place(a.From), place(b.From)), cmp.Compare(place(a.To), place(b.To)))
	})
	return m, nil
}

func countMilestones(it *queue.Item, rows map[layout.Name]*MilestoneRow) {
	for name, at := range it.Milestones {
		r := rows[name]
		if r == nil {
			r = &MilestoneRow{Milestone: name, First: at, Last: at}
			rows[name] = r
		}
		r.Items++
		if at.Before(r.First) {
			r.First = at
		}
		if at.After(r.Last) {
			r.Last = at
		}
	}
}

// quantile interpolates in a sorted, non-empty list.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}
