package runner

import (
	"context"
	"errors"
)

// place is where a piece of work runs: a slot, and a place of its step. Its work alone uses it.
type place struct {
	p    *Pool
	r    *stepRoom
	held bool
}

func (a *place) leave() {
	if a.held {
		a.held = false
		<-a.p.slots
		a.p.leave(a.r)
	}
}

// aside gives the place to others during wait, and takes it again, when the pool drains, too; but not once ctx
// has ended: whoever is cancelled ends, and needs none. All places may be of those that wait for it.
func (a *place) aside(ctx context.Context, wait func() error) error {
	a.leave()
	err := wait()
	if a.take(ctx) {
		return err
	}
	return errors.Join(err, context.Cause(ctx))
}

func (a *place) take(ctx context.Context) bool {
	if ctx.Err() != nil || !a.p.sit(a.r, ctx.Done(), nil) {
		return false
	}
	select {
	case a.p.slots <- struct{}{}:
		a.held = true
	case <-ctx.Done():
		a.p.leave(a.r)
	}
	return a.held
}
