package catalog

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

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
	done    []atomic.Bool
	open    sync.WaitGroup
}

// begin hands objects to the crew.
func (c *crew) begin(ctx context.Context, objects []object, do func(context.Context, object) error) *shift {
	s := &shift{objects: objects, errs: make([]error, len(objects)), done: make([]atomic.Bool, len(objects))}
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
			s.done[i].Store(true)
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

// wait returns when all is done, with the error that concerns more than its object. Meanwhile it tells every now and then
// what is not done.
func (s *shift) wait(ctx context.Context, every time.Duration, tell func(undone []object)) error {
	ended := make(chan struct{})
	go func() { s.open.Wait(); close(ended) }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for open := true; open; {
		select {
		case <-ended:
			open = false
		case <-tick.C:
			tell(s.undone())
		}
	}
	for _, err := range s.errs {
		if err != nil && (ctx.Err() != nil || ledger.StopsAll(err)) {
			return err
		}
	}
	return ctx.Err()
}

func (s *shift) undone() (all []object) {
	for i := range s.objects {
		if !s.done[i].Load() {
			all = append(all, s.objects[i])
		}
	}
	return all
}
