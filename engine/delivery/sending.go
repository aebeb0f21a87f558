package delivery

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// sendsAtOnce is how many deliveries go to a target at the same time.
const sendsAtOnce = 4

// senders are the targets that are being sent to. Each is sent to by itself, a few items at a time, so that one that does not
// answer keeps nothing from the others. A pass that goes on without one leaves it busy: no other pass sends there until it has ended.
type senders struct {
	all   sync.WaitGroup
	moved chan struct{} // has room for one: something ended

	telling sync.Mutex // held while somebody is told of a delivery, also of what an earlier pass left to itself

	mu     sync.Mutex // guards the rest
	busy   map[layout.Name]bool
	failed error // of what ended since the last pass
}

// send does what is due at each target, and gives what failed. It waits for all of it, or until nothing has moved for patience.
func (f *senders) send(ctx context.Context, due map[layout.Name][]layout.ItemID, patience time.Duration, do func(ctx context.Context, id layout.ItemID, to layout.Name) error) error {
	begun := 0
	ended := make(chan struct{}, len(due))
	for _, to := range slices.Sorted(maps.Keys(due)) {
		if !f.take(to) {
			continue
		}
		begun++
		f.all.Go(func() {
			defer func() { ended <- struct{}{} }()
			f.leave(to, f.one(ctx, due[to], func(ctx context.Context, id layout.ItemID) error { return do(ctx, id, to) }))
		})
	}
	f.await(ended, begun, patience)
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.failed
	f.failed = nil
	return err
}

// one goes through what is due at one target.
func (f *senders) one(ctx context.Context, items []layout.ItemID, do func(ctx context.Context, id layout.ItemID) error) error {
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(sendsAtOnce)
	for _, id := range items {
		if sending.Err() != nil {
			break
		}
		group.Go(func() error {
			err := do(sending, id)
			select {
			case f.moved <- struct{}{}:
			default:
			}
			return err
		})
	}
	return group.Wait()
}

// await waits until so many have ended, or nothing moves for patience; 0: however long.
func (f *senders) await(ended chan struct{}, n int, patience time.Duration) {
	var up <-chan time.Time
	for n > 0 {
		if patience > 0 {
			up = time.After(patience)
		}
		select {
		case <-ended:
			n--
		case <-f.moved:
		case <-up:
			return
		}
	}
}

func (f *senders) take(to layout.Name) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy[to] {
		return false
	}
	f.busy[to] = true
	return true
}

func (f *senders) leave(to layout.Name, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.busy, to)
	f.failed = errors.Join(f.failed, err)
}
