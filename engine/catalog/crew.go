package catalog

import (
	"context"
	"sync"

	"bagpipe/engine/ledger"
)

const objectsAtOnce = 1000 // side by side: they share their packs and syncs

// crew does one thing with many objects, side by side, while its caller goes on. Its goroutines
// serve a whole scan: to begin one for each object has its stack grown each time.
type crew struct {
	jobs    chan func()
	workers int
	ended   sync.WaitGroup
}

// shift is some objects that a crew is given together.
type shift struct {
	objects []object
	errs    []error
	open    sync.WaitGroup
}

// begin hands objects to the crew.
func (c *crew) begin(ctx context.Context, objects []object, do func(context.Context, object) error) *shift {
	s := &shift{objects: objects, errs: make([]error, len(objects))}
	s.open.Add(len(objects))
	if c.jobs == nil {
		c.jobs = make(chan func(), objectsAtOnce)
	}
	for ; c.workers < min(len(objects), objectsAtOnce); c.workers++ {
		c.ended.Go(c.work)
	}
	for i := range objects {
		c.jobs <- func() {
			defer s.open.Done()
			s.errs[i] = do(ctx, objects[i])
		}
	}
	return s
}

func (c *crew) work() {
	for job := range c.jobs {
		job()
	}
}

// dismiss returns when all that was begun is done.
func (c *crew) dismiss() {
	if c.jobs != nil {
		close(c.jobs)
		c.ended.Wait()
	}
}

// wait returns when all is done, with the error that concerns more than its object.
func (s *shift) wait(ctx context.Context) error {
	s.open.Wait()
	for _, err := range s.errs {
		if err != nil && (ctx.Err() != nil || ledger.StopsAll(err)) {
			return err
		}
	}
	return ctx.Err()
}
