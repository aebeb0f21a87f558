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
// they are among inboxLoop.left, and are not read again before their item is.

const (
	settled      = 2 * time.Second // no step runs that might end, or make another ready
	tryLeftAgain = 2 * settled     // longer, so that a run ends over what fails for good
)

// takeLeft goes on with what was taken before and is no item yet, but for what waits;
// also with what an engine took that has died since. An item may be closed by it.
func (l *inboxLoop) takeLeft(ctx context.Context) (err error) {
	if len(l.left) == 0 && !l.e.Intake.Orphaned(l.box) {
		return nil
	}
	var bound, free []inbox.Taken
	for _, t := range l.left {
		if _, waits := l.e.Intake.Bound(t); waits {
			bound = append(bound, t)
		} else {
			free = append(free, t)
		}
	}
	l.left, err = l.e.Intake.ResumeIntake(ctx, l.box, free, l.admitted)
	l.left = append(l.left, bound...)
	if l.failed = (time.Time{}); err != nil {
		l.failed = time.Now()
	}
	return err
}

func (l *inboxLoop) anyBound() bool {
	return slices.ContainsFunc(l.left, func(t inbox.Taken) bool { return t.Item != "" && !t.Promoted })
}

// anyFree tells whether some drop need not wait for its item any more. What failed is
// not tried again at once: it is likely to fail again.
func (l *inboxLoop) anyFree() bool {
	if time.Since(l.failed) < tryLeftAgain {
		return false
	}
	return slices.ContainsFunc(l.left, func(t inbox.Taken) bool {
		_, waits := l.e.Intake.Bound(t)
		return t.Item != "" && !waits
	})
}

// awaitBound waits, while this run is at work, for the items of drops that are to be
// versions. It tells whether one can go on.
func (l *inboxLoop) awaitBound(ctx context.Context) bool {
	last := time.Now()
	for l.anyBound() && ctx.Err() == nil && !l.pool.Draining() {
		if l.anyFree() {
			return true
		}
		if l.pool.Busy() > 0 {
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
func (l *inboxLoop) tellBound() {
	for _, t := range l.left {
		if why, waits := l.e.Intake.Bound(t); waits {
			l.tell(boundText(t, why))
			return
		}
	}
}

func boundText(t inbox.Taken, why string) string {
	return fmt.Sprintf("%s/%s: a new version; it %s", t.Collection, layout.EncodePath(t.Name), why)
}
