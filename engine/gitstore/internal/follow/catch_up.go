package follow

import (
	"context"
	"errors"
	"fmt"

	"bagpipe/engine/gitstore/internal/odb"
)

const maxRefused = 3 // times a full disk takes nothing until CaughtUp gives up

// pressed reports whether the backlog should be written at once.
func (f *Follower) pressed() bool { return f.waiters > 0 || f.done || f.backlog.full(8) }

func (f *Follower) press() {
	select {
	case f.hurry <- struct{}{}:
	default:
	}
}

// CaughtUp waits until the followed files are on disk as they were committed when it was
// called, or newer. It does not wait for another process that follows, nor for room on a
// full disk, which may never come: it gives the disk's error, and the next start writes
// the files.
func (f *Follower) CaughtUp(ctx context.Context) error {
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
	for until, refused := f.backlog.seq, f.room.refused; f.behind(until); {
		if f.room.err != nil && f.room.refused-refused >= maxRefused {
			return fmt.Errorf("what is shown in the workspace is behind the commits, and the next start brings it up to date: %w", f.room.err)
		}
		if err := ctx.Err(); err != nil {
			return errors.Join(err, f.room.err)
		}
		f.changed.Wait()
	}
	return nil
}

// behind reports whether a change of a move up to seq is not written yet.
func (f *Follower) behind(seq uint64) bool {
	return f.lost.yes || f.lost.working ||
		f.busy != nil && f.busy.seq <= seq ||
		len(f.backlog.queue) > 0 && f.backlog.oldest().seq <= seq
}

// Repair begins to bring the files in line with the branch: those that changed since the
// mark; with all, or without a mark, every file. CaughtUp waits for the end. Until the
// first Repair no mark is written. When another process follows, Repair does nothing.
func (f *Follower) Repair(all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.takeOver() || f.done:
	case all:
		f.lose(odb.Hash{})
	case !f.lost.yes:
		f.lose(f.mark.read())
	}
}
