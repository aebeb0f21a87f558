package delivery

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// The rules are: each target is sent to by itself, a few items at a time, so that one that does not answer keeps nothing from the
// others. A pass that goes on without one leaves it busy: no other pass sends there until its sends have ended.

// sendsAtOnce is how many deliveries go to a target at the same time.
const sendsAtOnce = 4

// senders are the targets that are being sent to.
type senders struct {
	all   sync.WaitGroup
	moved chan struct{} // has room for one: something ended

	mu     sync.Mutex // guards the rest; held while told is called
	busy   map[layout.Name]bool
	failed error // of what ended since the last pass
}

// Wait waits for what passes have left to itself.
func (k *Keeper) Wait() { k.senders.all.Wait() }

// sendAll sends what is ready, and takes back what is due.
func (k *Keeper) sendAll(ctx context.Context, b book, patience time.Duration, told func(Told)) error {
	due := map[layout.Name][]layout.ItemID{}
	for _, id := range slices.Sorted(maps.Keys(k.open)) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !k.open[id] {
			continue
		}
		targets, stays, err := k.dueOf(id)
		if err != nil {
			return err
		}
		k.open[id] = !stays
		for _, to := range targets {
			due[to] = append(due[to], id)
		}
	}
	f := &k.senders
	begun := 0
	ended := make(chan struct{}, len(due))
	for _, to := range slices.Sorted(maps.Keys(due)) {
		if !f.take(to) {
			continue
		}
		begun++
		f.all.Go(func() {
			defer func() { ended <- struct{}{} }()
			f.leave(to, k.sendTo(ctx, b, to, due[to], func(t Told) {
				f.mu.Lock()
				defer f.mu.Unlock()
				told(t)
			}))
		})
	}
	f.await(ended, begun, patience)
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.failed
	f.failed = nil
	return err
}

// await waits until so many have ended, or nothing moves for patience.
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

// sendTo goes through the items that have something due at one target.
func (k *Keeper) sendTo(ctx context.Context, b book, to layout.Name, items []layout.ItemID, told func(Told)) error {
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(sendsAtOnce)
	for _, id := range items {
		if sending.Err() != nil {
			break
		}
		group.Go(func() error {
			defer func() {
				select {
				case k.senders.moved <- struct{}{}:
				default:
				}
			}()
			return k.sendItem(sending, b, id, to, told)
		})
	}
	return group.Wait()
}

// dueOf gives the targets at which something of an item is due. stays: something keeps the item until its records change.
func (k *Keeper) dueOf(id layout.ItemID) (targets []layout.Name, stays bool, err error) {
	o, kept, err := k.sendable(id)
	if err != nil || o == nil {
		return nil, false, err
	}
	stays = kept
	for to, d := range o.delivery.Targets {
		if act := k.actAt(id, to, d, kept); act != nil {
			targets = append(targets, to)
		}
		stays = stays && (d.State == layout.DeliveryReady || !goesOn(d))
	}
	return targets, stays, nil
}

// sendable reads an item, and whether something keeps it from being sent; nil: it is gone, or cannot be read, of which others tell.
func (k *Keeper) sendable(id layout.ItemID) (o *object, kept bool, err error) {
	v, rec, err := k.ledger.ReadTip(id, "")
	if err != nil {
		return nil, false, nil
	}
	o, err = readObject(v, id)
	return o, state.Unsettled(rec.Execution, k.ledger.Now()) != "", err
}

// sendItem does what is due of one item at one target, as both stand by now.
func (k *Keeper) sendItem(ctx context.Context, b book, id layout.ItemID, to layout.Name, told func(Told)) error {
	o, kept, err := k.sendable(id)
	if err != nil || o == nil || o.delivery.Targets[to] == nil {
		return err
	}
	act := k.actAt(id, to, o.delivery.Targets[to], kept)
	if act == nil {
		return nil
	}
	return act(ctx, b, told)
}

// actAt is what is due at a target; nil: nothing.
func (k *Keeper) actAt(id layout.ItemID, to layout.Name, d *layout.Delivery, kept bool) func(ctx context.Context, b book, told func(Told)) error {
	due := !d.After.After(k.ledger.Now()) || markedSince(k, to, d)
	switch {
	case leftBack(k, d) || toTakeBack(d) && due:
		return func(ctx context.Context, b book, _ func(Told)) error {
			return k.withdrawOne(ctx, b, id, to, &Republished{}, k.ledger.Warn)
		}
	case d.State == layout.DeliverySending && !k.ledger.Seat.MayBeAlive(d.Engine):
		return func(ctx context.Context, b book, told func(Told)) error {
			return errors.Join(takeUp(ctx, k, b, id, to), k.send(ctx, b, id, to, told))
		}
	case d.State == layout.DeliveryReady && due && !kept:
		return func(ctx context.Context, b book, told func(Told)) error { return k.send(ctx, b, id, to, told) }
	}
	return nil
}
