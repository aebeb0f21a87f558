package gitstore

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pressed tells that the backlog should be written at once.
func (f *follower) pressed() bool {
	return f.waiters > 0 || f.done || len(f.pending) >= maxFollowPaths/2 || f.bytes >= maxFollowBytes/2
}

func (f *follower) press() {
	select {
	case f.hurry <- struct{}{}:
	default:
	}
}

// linger lets files change again, and then takes all that are queued as the next
// batch.
func (f *follower) linger() {
	if !f.pressed() {
		f.mu.Unlock()
		timer := time.NewTimer(followLag)
		select {
		case <-timer.C:
		case <-f.hurry:
		case <-f.s.stop:
		}
		timer.Stop()
		f.mu.Lock()
	}
	f.batch = len(f.queue)
}

// CaughtUp waits until the followed files are on disk as they were committed
// when it was called, or newer. When another process follows, that one writes
// them, and CaughtUp does not wait. Nor does it wait for room on a full disk, which
// may never come: it gives the disk's error, and the next start writes them.
func (s *Store) CaughtUp(ctx context.Context) error {
	f := s.follower
	if f == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.changed.Broadcast()
	})
	defer stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiters++
	defer func() { f.waiters-- }()
	f.press()
	for until, refused := f.seq, f.refused; f.behind(until); {
		if f.full != nil && f.refused-refused >= maxRefused {
			return fmt.Errorf("what is shown in the workspace is behind the commits, and the next start brings it up to date: %w", f.full)
		}
		if err := ctx.Err(); err != nil {
			return errors.Join(err, f.full)
		}
		f.changed.Wait()
	}
	return nil
}

// behind tells whether a change of a move up to seq is not written yet.
func (f *follower) behind(seq uint64) bool {
	return f.lost || f.working ||
		f.busy != nil && f.busy.seq <= seq ||
		len(f.queue) > 0 && f.pending[f.queue[0]].seq <= seq
}
