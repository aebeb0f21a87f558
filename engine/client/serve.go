package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"bagpipe/engine/remote/wire"
)

// Robot does a step. An error fails the attempt: a *Failure says how, any other is a failure
// of the system. It returns when ctx ends.
type Robot func(ctx context.Context, a *Attempt) error

// Failure ends an attempt otherwise than well.
type Failure struct {
	Exit    int // as a program's exit code
	Message string
}

func (f *Failure) Error() string { return f.Message }

// Content says that the producer must mend the content; Skip that the step is not needed here;
// Later that it is to be tried later, which costs no retry.
func Content(message string) error { return &Failure{65, message} }

// Skip says that the item does not need the step.
func Skip(message string) error { return &Failure{77, message} }

// Later has the step tried again later, which costs no retry.
func Later(message string) error { return &Failure{75, message} }

// Serve has a robot do the steps of a queue (WORKFLOW/STEP, or a named one), at most slots at
// once, until ctx ends; then the attempts that run are given back. Where the server cannot be
// reached it is asked again; an answer that will not change is the error.
func (c *Client) Serve(ctx context.Context, queue string, slots int, robot Robot) error {
	free := make(chan struct{}, max(1, slots))
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		one, ok, err := c.claim(ctx, queue)
		if err != nil || !ok {
			<-free
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("claim steps of %s: %w", queue, err)
			}
			continue
		}
		wg.Go(func() {
			defer func() { <-free }()
			c.perform(ctx, one, robot)
		})
	}
}

// claim waits for one attempt.
func (c *Client) claim(ctx context.Context, queue string) (one wire.Leased, ok bool, err error) {
	var got struct{ Attempts []wire.Leased }
	err = lasting(ctx, func() error {
		return c.call(ctx, http.MethodPost, "queues/"+escaped(queue)+"/claims", map[string]string{"wait": "20s"}, &got)
	})
	if err != nil || len(got.Attempts) == 0 {
		return one, false, err
	}
	return got.Attempts[0], true, nil
}

// perform takes an attempt to its end. An end that does not arrive leaves the attempt to its
// lease.
func (c *Client) perform(ctx context.Context, one wire.Leased, robot Robot) {
	working, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	a := &Attempt{c: c, path: "attempts/" + escaped(string(one.Item)+"/"+one.Workflow+"/"+string(one.Step)+"/"+one.Attempt), note: make(chan struct{}, 1), percent: -1}
	var keeping sync.WaitGroup
	keeping.Go(func() { a.keep(working, one, lose) })
	err := lost(lasting(working, func() error { return c.call(working, http.MethodGet, a.path, nil, &a.Given) }))
	if err == nil {
		err = guarded(working, robot, a)
	}
	ended := a.endOf(err)
	if ctx.Err() != nil && err != nil {
		ended = wire.Ended{Return: true, Message: "its program was stopped"}
	}
	if !errors.Is(context.Cause(working), ErrLost) && !errors.Is(err, ErrLost) {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(one.Seconds*float64(time.Second)))
		defer cancel()
		_ = lasting(last, func() error { return c.call(last, http.MethodPost, a.path+"/end", ended, nil) }) // see above
	}
	lose(nil)
	keeping.Wait()
}

// guarded calls a robot, whose panic is a failure.
func guarded(ctx context.Context, robot Robot, a *Attempt) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the robot panicked: %v", p)
		}
	}()
	return robot(ctx, a)
}
