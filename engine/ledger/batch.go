package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// The rules are: a batch begins with the commit of its first item, and ends with
// the commit that closes it. What an item's batch makes of its steps is queue's to
// say (queue/batch.go). That a step is done once for a batch rests on two things:
// the item that stands for the batch is the same for every engine, and of two
// claims of one step of one item the store takes one.

// NoBatch is the error of a batch that is not in the workspace.
func NoBatch(name layout.Name) error {
	return fault.New(fault.NotFound, fmt.Sprintf("no batch %q", name), fault.Remedy{Verb: fault.ListBatches})
}

// readBatch reads a batch at r; nil when there is none.
func readBatch(r gitstore.Reader, name layout.Name) (*layout.Batch, []byte, error) {
	data, err := ReadOptional(r, layout.BatchPath(name))
	if err != nil || data == nil {
		return nil, nil, err
	}
	b, err := layout.DecodeBatch(data)
	return &b, data, err
}

// CheckBatch refuses to add to a batch that is closed.
func (l *Ledger) CheckBatch(name layout.Name) error {
	if name == "" {
		return nil
	}
	v, err := l.Store.Tip()
	if err != nil {
		return err
	}
	b, _, err := readBatch(v, name)
	if err != nil || b == nil || b.Closed.IsZero() {
		return err
	}
	return fmt.Errorf("batch %s was closed by %s at %s; begin another", name, b.ClosedBy, layout.FormatTime(b.Closed))
}

// OpenBatch adds the batch of a new item to its commit, if it is the first.
func (l *Ledger) OpenBatch(r gitstore.Reader, name layout.Name, by string, files map[string][]byte) error {
	if name == "" {
		return nil
	}
	if b, _, err := readBatch(r, name); err != nil || b != nil {
		return err
	}
	data, err := layout.Batch{Name: name, Opened: l.Now().UTC().Truncate(Resolution), By: by}.Encode(nil)
	files[layout.BatchPath(name)] = data
	return err
}

func (l *Ledger) CloseBatch(ctx context.Context, name layout.Name, who Actor) error {
	_, err := l.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		b, old, err := readBatch(r, name)
		if err != nil {
			return nil, err
		}
		if b == nil {
			return nil, NoBatch(name)
		}
		if !b.Closed.IsZero() {
			return nil, nil
		}
		b.Closed, b.ClosedBy = l.Now().UTC().Truncate(Resolution), who.Agent
		data, err := b.Encode(old)
		if err != nil {
			return nil, err
		}
		return &gitstore.Change{Files: map[string][]byte{layout.BatchPath(name): data}, Author: who.Author,
			Message: who.Sign(Message("batch: closed "+string(name), "", []Trailer{{"Bagpipe-Batch", string(name)}, {"Bagpipe-Agent", who.Agent}}))}, nil
	})
	return err
}

// ListBatches gives the batches of a commit in the order of their names, and for each file of
// one that was pushed so that it cannot be read an error: its items wait as those of an open
// batch.
func ListBatches(v gitstore.View) (batches []layout.Batch, broken []error, err error) {
	entries, err := v.List(layout.BatchesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		name, ok := layout.BatchOfPath(layout.BatchesDir + "/" + entry.Name)
		if !ok || entry.IsDir {
			continue
		}
		data, err := v.ReadFile(layout.BatchPath(name))
		if err != nil {
			return nil, nil, err
		}
		b, err := layout.DecodeBatch(data)
		if err == nil && b.Name != name {
			err = fmt.Errorf("it is of a batch %q", b.Name)
		}
		if err != nil {
			broken = append(broken, fmt.Errorf("%s: %w", layout.BatchPath(name), err))
			continue
		}
		batches = append(batches, b)
	}
	return batches, broken, nil
}
