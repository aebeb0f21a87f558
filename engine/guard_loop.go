package engine

import (
	"context"
	"time"
)

// stopped tells whether the person wants the run to end.
func (r *run) stopped(ctx context.Context) bool {
	select {
	case <-r.o.Drain:
		return true
	default:
		return ctx.Err() != nil
	}
}

// guard looks at what others commit, as it comes.
func (r *run) guard(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.e.Guard.News:
		}
		if err := r.e.Guard.LookAtAll(ctx, r.pool.Draining); err != nil && ctx.Err() == nil {
			r.broken(err)
			time.AfterFunc(time.Second, r.e.Guard.Wake) // such as a full disk
		}
	}
}
