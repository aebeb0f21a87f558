package ask

import (
	"cmp"
	"slices"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// BatchRow is one batch in a listing.
type BatchRow struct {
	Batch    layout.Name `json:"batch"`
	Opened   time.Time   `json:"opened"`
	By       string      `json:"by"`
	Closed   time.Time   `json:"closed,omitzero"`
	ClosedBy string      `json:"closedBy,omitempty"`
	Items    int         `json:"items"`
	Open     int         `json:"open"`   // items with a workflow that is not done
	Failed   int         `json:"failed"` // items with one that failed
}

// Batches lists the batches, the oldest first.
func (li *Lists) Batches() ([]BatchRow, error) {
	v, err := li.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	batches, _, err := ledger.ListBatches(v) // of a broken one the index warned
	if err != nil {
		return nil, err
	}
	rows := []BatchRow{}
	at := map[string]int{}
	for _, b := range batches {
		at[string(b.Name)] = len(rows)
		rows = append(rows, BatchRow{Batch: b.Name, Opened: b.Opened, By: b.By, Closed: b.Closed, ClosedBy: b.ClosedBy})
	}
	for it := range li.index.Loaded().Items() {
		if i, there := at[it.Batch]; there && it.Batch != "" {
			rows[i].count(it)
		}
	}
	slices.SortStableFunc(rows, func(a, b BatchRow) int {
		return cmp.Or(a.Opened.Compare(b.Opened), cmp.Compare(a.Batch, b.Batch))
	})
	return rows, nil
}

func (b *BatchRow) count(it *queue.Item) {
	b.Items++
	open, failed := it.Broken != "", it.Broken != ""
	for r := range it.Runs {
		open = open || it.Runs[r].Status.UnderWay() || it.Runs[r].Status == state.Failed
		failed = failed || it.Runs[r].Status == state.Failed
	}
	if open {
		b.Open++
	}
	if failed {
		b.Failed++
	}
}

// Batch gives one batch and its items.
func (li *Lists) Batch(name layout.Name) (BatchRow, []ItemRow, error) {
	rows, err := li.Batches()
	if err != nil {
		return BatchRow{}, nil, err
	}
	i := slices.IndexFunc(rows, func(b BatchRow) bool { return b.Batch == name })
	if i < 0 {
		return BatchRow{}, nil, ledger.NoBatch(name)
	}
	items := []ItemRow{}
	for it := range li.index.Loaded().Items() {
		if it.Batch == string(name) {
			items = append(items, li.row(it))
		}
	}
	return rows[i], items, nil
}

// Progress counts, of the items that fit, those that runs go on with, those that wait for
// people alone, and those that failed.
func (li *Lists) Progress(fits func(*queue.Item) bool) (underWay, people, failed int) {
	now := li.ledger.Now()
	for it := range li.index.Loaded().Items() {
		if !fits(it) {
			continue
		}
		goes, waits := goesOn(it, now)
		switch {
		case goes:
			underWay++
		case len(Failings(it)) > 0:
			failed++
		case waits:
			people++
		}
	}
	return underWay, people, failed
}

// goesOn reports whether runs go on with an item, and whether it waits for a person.
func goesOn(it *queue.Item, now time.Time) (goes, person bool) {
	if it.Held || it.Broken != "" {
		return false, true
	}
	for r := range it.Runs {
		run := &it.Runs[r]
		if !run.Status.UnderWay() {
			continue
		}
		waits, open := false, false
		for i := range run.Steps {
			switch why := it.BlockedAt(run, i, now); {
			case run.Steps[i].Status == state.InProgress, run.Steps[i].Status == state.Waiting && (why == nil || why.Code == "retry" || why.Code == "date"):
				open = true
			case run.Steps[i].Status == state.Waiting && why.Code == "manual":
				waits = true
			}
		}
		goes, person = goes || open || !waits, person || waits
	}
	return goes, person
}
