package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

func refusedf(format string, args ...any) error {
	return fault.New(fault.Refused, fmt.Sprintf(format, args...))
}

// Approve lets a delivery go that waits, was refused, or was taken back or is to be, as by decides. One that no rule wants
// is refused: the approval would take the place of what was decided before, and bring nothing there.
func (k *Keeper) Approve(ctx context.Context, by ledger.Actor, id layout.ItemID, to layout.Name, text string) error {
	b, err := bookInForce(ctx, k)
	if err := cmp.Or(err, b.mistake); err != nil {
		return err
	}
	return k.decide(ctx, by, id, to, layout.DeliveryApproved, text, func(o *object, d *layout.Delivery) error {
		r, _ := b.first(string(to), o, k.ledger.Now())
		switch {
		case r == nil:
			return notListed(id, to)
		case d.State == layout.DeliveryWaits, d.State == layout.DeliveryForbidden, d.State == layout.DeliveryWithdrawn:
			d.State = layout.DeliveryReady
			return nil
		case d.State == layout.DeliveryUnconfirmed && d.Sent != nil && wantedBack(d) && d.Engine == "":
			d.State, d.Sent.Maybe = layout.DeliveryReady, true // the target is asked whether it holds it still
			return nil
		}
		return refusedf("the delivery of item %s to %s is %s; there is nothing to approve", id.Short(), to, d.State)
	})
}

// Refuse keeps an item from a target that does not hold it, this version and those to come.
func (k *Keeper) Refuse(ctx context.Context, by ledger.Actor, id layout.ItemID, to layout.Name, text string) error {
	return k.decide(ctx, by, id, to, layout.DeliveryRefused, text, func(_ *object, d *layout.Delivery) error {
		switch d.State {
		case layout.DeliveryReady, layout.DeliveryWaits, layout.DeliveryFailed, layout.DeliveryWithdrawn:
			d.State = layout.DeliveryForbidden
			return nil
		}
		return refusedf("the delivery of item %s to %s is %s; a delivered object is taken back, not refused", id.Short(), to, d.State)
	})
}

func (k *Keeper) decide(ctx context.Context, who ledger.Actor, id layout.ItemID, to layout.Name, what, text string, change func(*object, *layout.Delivery) error) error {
	return k.setOne(ctx, id, to, who, func(o *object, d *layout.Delivery) error {
		if err := change(o, d); err != nil {
			return err
		}
		d.Attempts, d.After, d.Message = 0, time.Time{}, ""
		d.Decision = &layout.DeliveryDecision{What: what, By: who.Agent, At: k.ledger.Now(), Version: o.version(), Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage)}
		return nil
	})
}

// Retry has a delivery that failed, or waits for its next try, tried at once, also where it is one of
// taking the item back. state is the one that it is in then.
func (k *Keeper) Retry(ctx context.Context, by ledger.Actor, id layout.ItemID, to layout.Name) (state string, err error) {
	err = k.setOne(ctx, id, to, by, func(_ *object, d *layout.Delivery) error {
		switch {
		case d.State == layout.DeliveryFailed, d.State == layout.DeliveryReady && d.Attempts > 0:
			d.State = layout.DeliveryReady
		case notTakenBack(d):
			d.Due = true
		default:
			return refusedf("the delivery of item %s to %s is %s; it has not failed", id.Short(), to, d.State)
		}
		// One attempt stays noted: what failed may be there, and the target is asked.
		d.Attempts, d.After, d.Message, state = 1, time.Time{}, "", d.State
		return nil
	})
	return state, err
}

// notTakenBack reports whether the target kept an item when it was to be taken back.
func notTakenBack(d *layout.Delivery) bool {
	return d.State == layout.DeliveryUnconfirmed && d.Engine == "" && d.Sent != nil && d.Attempts > 0
}

// Withdraw takes an item back from a target, for good: it is not sent again, whatever the target says. From one that is
// away it is taken back by the first Pass that finds it there; the error then is a *target.Down. One that refuses leaves it
// to a person.
func (k *Keeper) Withdraw(ctx context.Context, who ledger.Actor, id layout.ItemID, to layout.Name, text string) error {
	failure, err := takeBack(ctx, k, id, to, who, func(o *object, d *layout.Delivery) error {
		if d.Sent == nil || d.State == layout.DeliverySending || d.State == layout.DeliveryWithdrawn || d.Engine != "" {
			return refusedf("the delivery of item %s to %s is %s; there is nothing to take back", id.Short(), to, d.State)
		}
		d.Attempts, d.After = 0, time.Time{}
		d.Decision = &layout.DeliveryDecision{What: layout.DeliveryTakeBack, By: who.Agent, At: k.ledger.Now(), Version: o.version(), Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage)}
		return nil
	})
	if failure != nil && !Away(failure) {
		failure = fmt.Errorf("%w; that it is to be taken back stands, and it is not sent again", failure)
	}
	return errors.Join(failure, err)
}

// takeBack takes an item back from a target: committed before it begins, so that no other engine
// sends or confirms it meanwhile, and when the target holds it no more. A crash between leaves it
// unconfirmed with an engine that is gone; Pass goes on with it. may refuse. failure is the
// target's, which holds the item still; where it refused, that is left to a person.
func takeBack(ctx context.Context, k *Keeper, id layout.ItemID, to layout.Name, who ledger.Actor, may func(*object, *layout.Delivery) error) (failure, err error) {
	if _, err := k.ledger.Seat.Engine(); err != nil {
		return nil, err
	}
	var mine *object
	err = k.setOne(ctx, id, to, who, func(o *object, d *layout.Delivery) error {
		mine = nil
		if err := may(o, d); err != nil {
			return err
		}
		d.State, d.Engine, mine = layout.DeliveryUnconfirmed, k.ledger.ID, o
		return nil
	})
	if err != nil || mine == nil {
		return nil, err
	}
	failure = k.remove(ctx, mine, to)
	err = k.setOne(context.WithoutCancel(ctx), id, to, who, func(_ *object, d *layout.Delivery) error {
		if d.State != layout.DeliveryUnconfirmed || d.Engine != k.ledger.ID {
			return errNothing // another engine took this one for dead, and goes on
		}
		if d.Engine = ""; failure != nil {
			d.Attempts++
			d.After = k.ledger.Now().Add(backoff(k.settings.Current().Settings, min(d.Attempts, mostTries)))
			if d.Message = ""; unknown(k, to) == nil { // else lists say so, as long as it is so
				d.Message = ledger.Clip(ledger.Printable(failure.Error()), 1000)
			}
			d.Sent.Maybe = d.Sent.Maybe || !errors.As(failure, new(unsent))
			if !Away(failure) {
				if d.Due = false; wantedBack(d) {
					d.Decision.Kept = true
				}
			}
			var other *elsewhere
			if errors.As(failure, &other) { // nothing of it is here any more
				d.Sent.Place, d.Sent.Left, d.Sent.Maybe = other.places[0], other.places[1:], false
			}
			return nil
		}
		d.Version, d.Digest = d.Sent.Version, d.Sent.Digest
		d.State, d.Sent, d.Due, d.Attempts, d.After, d.Message = layout.DeliveryWithdrawn, nil, false, 0, time.Time{}, ""
		return nil
	})
	return failure, err
}

// leftBack reports whether an engine that is gone was taking an item back.
func leftBack(k *Keeper, d *layout.Delivery) bool {
	return d.State == layout.DeliveryUnconfirmed && d.Engine != "" && !k.ledger.Seat.MayBeAlive(d.Engine)
}

// WithdrawAll takes an item back from all targets that hold it. It may be done again.
func (k *Keeper) WithdrawAll(ctx context.Context, id layout.ItemID, why string) error {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return err
	}
	o, err := readObject(v, id)
	if err != nil || o == nil {
		return err
	}
	if o.bad != nil { // some target may hold it
		return o.bad
	}
	for _, to := range slices.Sorted(maps.Keys(o.delivery.Targets)) {
		if o.delivery.Targets[to].Sent == nil && o.delivery.Targets[to].State != layout.DeliverySending {
			continue
		}
		if err := k.Withdraw(ctx, k.ledger.ByPerson(), id, to, why); err != nil {
			return err
		}
	}
	return nil
}

// remove takes what a target holds of an item away: each version that was sent, the last one last, so that until then
// the target holds what the record says.
func (k *Keeper) remove(ctx context.Context, o *object, to layout.Name) error {
	_, out, err := k.outletFor(o, to)
	if err != nil {
		return err
	}
	sent := o.delivery.Targets[to].Sent
	here := goalOf(k.ledger.Root, k.settings.Current().Settings, string(to))
	left := leftAt(sent, here.Where())
	if here.moved(sent) && !slices.Contains(sent.Left, here.Where()) {
		_, has, err := out.ask(ctx, parcel{Key: keyOf(o.id, sent.Version, to), Item: o.id, Version: sent.Version, Target: to, Digest: sent.Digest, Format: formatOf(here.Config), unknown: true})
		if err != nil {
			return fmt.Errorf("take item %s back from %s: %w", o.id.Short(), to, err)
		}
		if has { // it has moved along
			left = slices.DeleteFunc(left, func(place string) bool { return place == sent.Place })
		}
	}
	back := func(version int, digest string) error {
		p := parcel{Key: keyOf(o.id, version, to), Item: o.id, Version: version, Target: to, Digest: digest}
		if err := out.remove(ctx, p); err != nil {
			return fmt.Errorf("take item %s back from %s: %w", o.id.Short(), to, err)
		}
		return nil
	}
	if out.apart() {
		for _, version := range slices.Sorted(maps.Keys(sent.Earlier)) {
			if err := back(version, sent.Earlier[version]); err != nil {
				return err
			}
		}
	}
	if err := back(sent.Version, sent.Digest); err != nil || len(left) == 0 {
		return err
	}
	return &elsewhere{to, here.Where(), left}
}

// elsewhere says that a target was at other places when it was sent something, which stays there.
type elsewhere struct {
	to     layout.Name
	here   string
	places []string // not empty
}

func (e *elsewhere) Error() string {
	return fmt.Sprintf("target %s is %s now, and what was sent to it before stands at %s: let the target be there again, and take it back", e.to, e.here, strings.Join(e.places, ", and at "))
}
