package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"bagpipe/engine/inbox"
	"bagpipe/layout"
)

// What a run does with the drops that are to be versions of items which are not done:
// they are among r.left, and are not read again before their item is.

// takeLeft goes on with what was taken before and is no item yet, but for what waits;
// also with what an engine took that has died since. An item may be closed by it.
func (r *run) takeLeft(ctx context.Context) (err error) {
	if len(r.left) == 0 && !r.e.Intake.Orphaned(r.box) {
		return nil
	}
	var bound, free []inbox.Taken
	for _, t := range r.left {
		if _, waits := r.e.Intake.Bound(t); waits {
			bound = append(bound, t)
		} else {
			free = append(free, t)
		}
	}
	r.left, err = r.e.Intake.ResumeIntake(ctx, r.box, free, r.admitted)
	r.left = append(r.left, bound...)
	return err
}

func (r *run) anyBound() bool {
	return slices.ContainsFunc(r.left, func(t inbox.Taken) bool { return t.Item != "" && !t.Promoted })
}

// anyFree tells whether some drop need not wait for its item any more.
func (r *run) anyFree() bool {
	return slices.ContainsFunc(r.left, func(t inbox.Taken) bool {
		_, waits := r.e.Intake.Bound(t)
		return t.Item != "" && !waits
	})
}

// awaitBound waits, while this run is at work, for the items of drops that are to be
// versions. It tells whether one can go on.
func (r *run) awaitBound(ctx context.Context) bool {
	const settled = 2 * time.Second // no step runs that might end, or make another ready
	last := time.Now()
	for r.anyBound() && ctx.Err() == nil && !r.pool.Draining() {
		if r.anyFree() {
			return true
		}
		if r.pool.Busy() > 0 {
			last = time.Now()
		}
		if time.Since(last) > settled {
			return false
		}
		select {
		case <-time.After(roomEvery):
		case <-ctx.Done():
		}
	}
	return false
}

// tellBound tells of a drop that waits for its item.
func (r *run) tellBound() {
	for _, t := range r.left {
		if why, waits := r.e.Intake.Bound(t); waits {
			r.tell(boundText(t, why))
			return
		}
	}
}

func boundText(t inbox.Taken, why string) string {
	return fmt.Sprintf("%s/%s: a new version; it %s", t.Collection, layout.EncodePath(t.Name), why)
}
