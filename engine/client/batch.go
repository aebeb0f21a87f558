package client

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Batch is items that belong together.
type Batch struct {
	Name string
	c    *Client
}

// Batch gives the batch of a name; its first item begins it.
func (c *Client) Batch(name string) *Batch { return &Batch{name, c} }

// Submit submits an item of the batch.
func (b *Batch) Submit(ctx context.Context, s Submission) (*Sent, error) {
	s.Batch = b.Name
	return b.c.Submit(ctx, s)
}

// BatchResult is how a batch came to its end.
type BatchResult struct {
	Items, Failed int
}

// Complete closes the batch, and returns when all its items have come to their ends, with the
// step that is done once for all of them (onBatchComplete).
func (b *Batch) Complete(ctx context.Context) (r BatchResult, err error) {
	err = lasting(ctx, func() error {
		return b.c.call(ctx, http.MethodPost, "batches/"+escaped(b.Name)+"/close", nil, nil)
	})
	if err != nil {
		return r, fmt.Errorf("close batch %s: %w", b.Name, err)
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		var at struct{ Items, Open, Failed int }
		err := lasting(ctx, func() error {
			return b.c.call(ctx, http.MethodGet, "batches/"+escaped(b.Name), nil, &at)
		})
		if err != nil {
			return r, fmt.Errorf("look at batch %s: %w", b.Name, err)
		}
		if at.Open == at.Failed {
			b.c.watch.tell(Event{Kind: EventBatch, Batch: b.Name, At: time.Now()})
			return BatchResult{at.Items, at.Failed}, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return r, context.Cause(ctx)
		}
	}
}
