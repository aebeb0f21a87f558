package delivery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

func refusedf(format string, args ...any) error {
	return fault.New(fault.Refused, fmt.Sprintf(format, args...))
}

// Approve lets a delivery go that waits, was refused or was taken back.
func (k *Keeper) Approve(ctx context.Context, id layout.ItemID, to layout.Name, text string) error {
	return k.decide(ctx, id, to, layout.DeliveryApproved, text, func(d *layout.Delivery) error {
		switch d.State {
		case layout.DeliveryWaits, layout.DeliveryForbidden, layout.DeliveryWithdrawn:
			d.State = layout.DeliveryReady
			return nil
		}
		return refusedf("the delivery of item %s to %s is %s; there is nothing to approve", id.Short(), to, d.State)
	})
}

// Refuse keeps an item from a target, this version and those to come.
func (k *Keeper) Refuse(ctx context.Context, id layout.ItemID, to layout.Name, text string) error {
	return k.decide(ctx, id, to, layout.DeliveryRefused, text, func(d *layout.Delivery) error {
		switch d.State {
		case layout.DeliveryReady, layout.DeliveryWaits, layout.DeliveryFailed:
			d.State = layout.DeliveryForbidden
			return nil
		}
		return refusedf("the delivery of item %s to %s is %s; what a target holds is taken back, not refused", id.Short(), to, d.State)
	})
}

func (k *Keeper) decide(ctx context.Context, id layout.ItemID, to layout.Name, what, text string, change func(*layout.Delivery) error) error {
	who := k.ledger.ByPerson()
	return k.setOne(ctx, id, to, who, func(o *object, d *layout.Delivery) error {
		if err := change(d); err != nil {
			return err
		}
		d.Attempts, d.After, d.Message = 0, time.Time{}, ""
		d.Decision = &layout.DeliveryDecision{What: what, By: who.Agent, At: k.ledger.Now(), Version: o.version(), Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage)}
		return nil
	})
}

// Retry has a delivery that failed, or waits for its next try, tried at once.
func (k *Keeper) Retry(ctx context.Context, id layout.ItemID, to layout.Name) error {
	return k.setOne(ctx, id, to, k.ledger.ByPerson(), func(_ *object, d *layout.Delivery) error {
		if d.State != layout.DeliveryFailed && (d.State != layout.DeliveryReady || d.Attempts == 0) {
			return refusedf("the delivery of item %s to %s is %s; it has not failed", id.Short(), to, d.State)
		}
		// One attempt stays noted: what failed may be there, and the target is asked.
		d.State, d.Attempts, d.After, d.Message = layout.DeliveryReady, 1, time.Time{}, ""
		return nil
	})
}

// Withdraw takes an item back from a target, for good: the target first, then the record. A
// crash between is mended by doing it again.
func (k *Keeper) Withdraw(ctx context.Context, id layout.ItemID, to layout.Name, text string) error {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return err
	}
	o, err := readObject(v, id)
	if err != nil {
		return err
	}
	if o == nil || o.delivery.Targets[to] == nil {
		return notListed(id, to)
	}
	if d := o.delivery.Targets[to]; d.Sent == nil || d.State == layout.DeliverySending || d.State == layout.DeliveryWithdrawn {
		return refusedf("the delivery of item %s to %s is %s; there is nothing to take back", id.Short(), to, d.State)
	}
	if err := k.remove(ctx, o, to); err != nil {
		return err
	}
	return k.decide(ctx, id, to, layout.DeliveryTakeBack, text, func(d *layout.Delivery) error {
		d.State, d.Sent = layout.DeliveryWithdrawn, nil
		return nil
	})
}

// remove takes what a target holds of an item away.
func (k *Keeper) remove(ctx context.Context, o *object, to layout.Name) error {
	_, out, err := k.outletFor(o, to)
	if err != nil {
		return err
	}
	sent := o.delivery.Targets[to].Sent
	p := parcel{Key: keyOf(o.id, sent.Version, to), Item: o.id, Version: sent.Version, Target: to, Digest: sent.Digest}
	if err := out.remove(ctx, p); err != nil {
		return fmt.Errorf("take item %s back from %s: %w", o.id.Short(), to, err)
	}
	return nil
}

// Row is one delivery as listed.
type Row struct {
	Item   layout.ItemID `json:"item"`
	Label  string        `json:"label"`
	Target layout.Name   `json:"target"`
	layout.Delivery
}

// Rows lists deliveries by label, item and target: those to a target, in a state; "": all.
func (k *Keeper) Rows(ctx context.Context, to layout.Name, in string) (rows []Row, err error) {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex // guards rows
	err = each(ctx, k.ledger, v, gitstore.Hash{}, func(o *object) {
		m, err := layout.DecodeManifest(o.manifest)
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for name, d := range o.delivery.Targets {
			if (to == "" || to == name) && (in == "" || in == d.State) {
				rows = append(rows, Row{o.id, ledger.Printable(m.Label), name, *d})
			}
		}
	})
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Label, b.Label), cmp.Compare(a.Item, b.Item), cmp.Compare(a.Target, b.Target))
	})
	return rows, err
}
