package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// The rules are: a batch begins with the commit of its first item, and ends with
// the commit that closes it. What an item's batch makes of its steps is queue's to
// say (queue/batch.go). That a step is done once for a batch rests on two things:
// the item that stands for the batch is the same for every engine, and of two
// claims of one step of one item the store takes one.

// NoBatchError is a batch that is not in the workspace.
type NoBatchError struct{ Name layout.Name }

func (e *NoBatchError) Error() string {
	return fmt.Sprintf("no batch %q; bagpipe batch list shows them", e.Name)
}

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

// readBatch reads a batch at r; nil when there is none.
func readBatch(r gitstore.Reader, name layout.Name) (*layout.Batch, []byte, error) {
	data, err := readOptional(r, layout.BatchPath(name))
	if err != nil || data == nil {
		return nil, nil, err
	}
	b, err := layout.DecodeBatch(data)
	return &b, data, err
}

// checkBatch refuses to add to a batch that is closed.
func (e *Engine) checkBatch(name layout.Name) error {
	if name == "" {
		return nil
	}
	v, err := e.store.Tip()
	if err != nil {
		return err
	}
	b, _, err := readBatch(v, name)
	if err != nil || b == nil || b.Closed.IsZero() {
		return err
	}
	return fmt.Errorf("batch %s was closed by %s at %s; begin another", name, b.ClosedBy, layout.FormatTime(b.Closed))
}

// openBatch adds the batch of a new item to its commit, if it is the first.
func (e *Engine) openBatch(r gitstore.Reader, name layout.Name, by string, files map[string][]byte) error {
	if name == "" {
		return nil
	}
	if b, _, err := readBatch(r, name); err != nil || b != nil {
		return err
	}
	data, err := layout.Batch{Name: name, Opened: e.o.Now().UTC().Truncate(ms), By: by}.Encode(nil)
	files[layout.BatchPath(name)] = data
	return err
}

// CloseBatch commits that nothing is added to a batch any more. Closing it again
// changes nothing.
func (e *Engine) CloseBatch(ctx context.Context, name layout.Name) error {
	return e.closeBatch(ctx, name, e.byPerson())
}

func (e *Engine) closeBatch(ctx context.Context, name layout.Name, who actor) error {
	_, err := e.store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		b, old, err := readBatch(r, name)
		if err != nil {
			return nil, err
		}
		if b == nil {
			return nil, &NoBatchError{name}
		}
		if !b.Closed.IsZero() {
			return nil, nil
		}
		b.Closed, b.ClosedBy = e.o.Now().UTC().Truncate(ms), who.agent
		data, err := b.Encode(old)
		if err != nil {
			return nil, err
		}
		return &gitstore.Change{Files: map[string][]byte{layout.BatchPath(name): data}, Author: who.author,
			Message: message("batch: closed "+string(name), "", []trailer{{"Bagpipe-Batch", string(name)}, {"Bagpipe-Agent", who.agent}})}, nil
	})
	return err
}

// loadBatches tells the index which batches are closed.
func (e *Engine) loadBatches(v gitstore.View, index *queue.Index) error {
	batches, err := listBatches(v)
	for _, b := range batches {
		index.SetBatch(string(b.Name), !b.Closed.IsZero())
	}
	return err
}

// noteBatch does so for one that was committed. A damaged one stays as it was.
func (e *Engine) noteBatch(index *queue.Index, c gitstore.FileChange) {
	name, ok := layout.BatchOfPath(c.Path)
	if !ok || index == nil || c.Deleted {
		return
	}
	b, err := layout.DecodeBatch(c.Data)
	if err != nil || b.Name != name {
		e.o.Log.Warn("a batch that cannot be read was committed", "path", c.Path, "err", err)
		return
	}
	index.SetBatch(string(name), !b.Closed.IsZero())
}

func listBatches(v gitstore.View) (batches []layout.Batch, err error) {
	entries, err := v.List(layout.BatchesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name, ok := layout.BatchOfPath(layout.BatchesDir + "/" + entry.Name)
		if !ok {
			continue
		}
		b, _, err := readBatch(v, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", layout.BatchPath(name), err)
		}
		batches = append(batches, *b)
	}
	return batches, nil
}

// Batches lists the batches, the oldest first; Load must have been called.
func (e *Engine) Batches() ([]BatchRow, error) {
	v, err := e.store.Tip()
	if err != nil {
		return nil, err
	}
	batches, err := listBatches(v)
	if err != nil {
		return nil, err
	}
	rows := []BatchRow{}
	at := map[string]int{}
	for _, b := range batches {
		at[string(b.Name)] = len(rows)
		rows = append(rows, BatchRow{Batch: b.Name, Opened: b.Opened, By: b.By, Closed: b.Closed, ClosedBy: b.ClosedBy})
	}
	for it := range e.index.Items() {
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
		open = open || it.Runs[r].Status == state.InProgress || it.Runs[r].Status == state.Failed
		failed = failed || it.Runs[r].Status == state.Failed
	}
	if open {
		b.Open++
	}
	if failed {
		b.Failed++
	}
}

// Batch gives one batch and its items; Load must have been called.
func (e *Engine) Batch(name layout.Name) (BatchRow, []ItemRow, error) {
	rows, err := e.Batches()
	if err != nil {
		return BatchRow{}, nil, err
	}
	i := slices.IndexFunc(rows, func(b BatchRow) bool { return b.Batch == name })
	if i < 0 {
		return BatchRow{}, nil, &NoBatchError{name}
	}
	items := []ItemRow{}
	for it := range e.index.Items() {
		if it.Batch == string(name) {
			items = append(items, e.row(it))
		}
	}
	return rows[i], items, nil
}

// aroundOf is state.Execution.Around of an item, as the index knows the others; nil
// where there is none, as for what a person decides.
func (e *Engine) aroundOf(id layout.ItemID) func(string, layout.Name) (*state.Reason, string) {
	e.mu.Lock()
	index := e.index
	e.mu.Unlock()
	if index == nil {
		return nil
	}
	return func(workflow string, step layout.Name) (*state.Reason, string) {
		return index.Around(id, workflow, step)
	}
}

// closeSession closes the batch of what this run has taken in.
func (r *run) closeSession(ctx context.Context) {
	if r.o.Batch == "" || ctx.Err() != nil || r.pool.Draining() {
		return
	}
	var none *NoBatchError
	if err := r.e.closeBatch(r.ctx, r.o.Batch, r.e.byPerson()); err != nil && !errors.As(err, &none) {
		r.broken(err)
	}
}
