package export

import (
	"context"
	"runtime"

	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// sideBySide does something with each item, as many at once as there are processors. An error ends it.
func sideBySide(ctx context.Context, items []layout.ItemID, do func(layout.ItemID) error) error {
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, id := range items {
		if going.Err() != nil {
			break
		}
		group.Go(func() error { return do(id) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// inOrder reads items, as many ahead as there are processors, and takes them in their order, one at a time. An error ends it.
func inOrder(ctx context.Context, items []layout.ItemID, read func(layout.ItemID) (*record, error), take func(layout.ItemID, *record) error) error {
	type answer struct {
		r   *record
		err error
	}
	ctx, stop := context.WithCancel(ctx)
	asked := make(chan chan answer, runtime.GOMAXPROCS(0)-1) // and the one that is handed over
	var group errgroup.Group
	defer group.Wait() //nolint:errcheck // it answers none
	defer stop()
	group.Go(func() error {
		defer close(asked)
		for _, id := range items {
			to := make(chan answer, 1)
			select {
			case asked <- to:
			case <-ctx.Done():
				return nil
			}
			group.Go(func() error {
				r, err := read(id)
				to <- answer{r, err}
				return nil
			})
		}
		return nil
	})
	i := 0
	for to := range asked {
		a := <-to
		if a.err != nil {
			return a.err
		}
		if err := take(items[i], a.r); err != nil {
			return err
		}
		i++
	}
	return ctx.Err()
}
