package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/delivery"
	"bagpipe/layout"
)

// Delivery shows and decides what goes to other systems.
type Delivery struct {
	List      deliveryList      `cmd:"" default:"withargs" help:"List deliveries: under way, waiting, done, failed."`
	Approve   deliveryApprove   `cmd:"" help:"Let an item go that waits for approval, was refused or taken back."`
	Refuse    deliveryRefuse    `cmd:"" help:"Keep an item from a target, this version and those to come."`
	Retry     deliveryRetry     `cmd:"" help:"Try a failed delivery again."`
	Withdraw  deliveryWithdraw  `cmd:"" help:"Take an item back from a target."`
	Republish deliveryRepublish `cmd:"" help:"Hold all items against the rules; take back deliveries that none wants any more."`
}

type deliveryList struct {
	To    layout.Name `placeholder:"TARGET" help:"Only to this target."`
	State string      `enum:",ready,waits,forbidden,sending,delivered,unconfirmed,withdrawn,failed,unreadable" default:"" placeholder:"STATE" help:"Only in this state: ready, waits, forbidden, sending, delivered, unconfirmed, withdrawn, failed, unreadable."`
	JSON  bool        `name:"json" help:"Print JSON, one object a line."`
}

// Run lists deliveries.
func (c *deliveryList) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		rows, err := e.Delivery.Rows(ctx, c.To, c.State)
		if err != nil {
			return err
		}
		t := screen.NewTable("item", "label", "target", "version", "state", "rule", "message")
		for _, r := range rows {
			if c.JSON {
				if err := on.JSONLine(r); err != nil {
					return err
				}
			}
			t.Row(r.Item.Short(), r.Label, string(r.Target), r.Version, r.State, r.Rule, cmp.Or(r.WaitsFor, r.Message))
		}
		switch {
		case c.JSON:
			return nil
		case len(rows) == 0:
			on.Talk("no deliveries; what goes where stands below delivery: in %s/NAME.yaml", layout.RulesDir)
			return nil
		}
		return t.Print(on.Out)
	})
}

// deliveries are some items, and a target.
type deliveries struct {
	Item []string    `arg:"" optional:"" help:"Identifier, the beginning of one, or label."`
	To   layout.Name `required:"" placeholder:"TARGET" help:"The target."`
	All  bool        `help:"All of the target: of approve and refuse those that wait, of retry those that failed or could not be taken back, of withdraw those it holds."`
}

// Validate is called by kong.
func (c *deliveries) Validate() error {
	if c.All == (len(c.Item) > 0) {
		return errors.New("name items, or give --all")
	}
	return nil
}

// each does something with each item, or with all whose delivery is one of those, and prints how it stands.
func (c *deliveries) each(ctx context.Context, on *screen.Screen, open Open, of func(layout.Delivery) bool, act func(*engine.Engine, layout.ItemID) (state string, err error)) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		one := func(id layout.ItemID) error {
			state, err := act(e, id)
			if err == nil {
				fmt.Fprintf(on.Out, "%s  %s  %s\n", id.Short(), c.To, state)
			}
			return err
		}
		if c.All {
			return c.all(ctx, on, e, of, one)
		}
		return c.named(ctx, on, e, one)
	})
}

// named does something with the items that were named. Of several, one that cannot be is told, and the others are gone on with: exit
// code 4, or 1 where none could be.
func (c *deliveries) named(ctx context.Context, on *screen.Screen, e *engine.Engine, one func(layout.ItemID) error) error {
	bad := 0
	for _, ref := range c.Item {
		if err := ctx.Err(); err != nil {
			return err
		}
		id, err := e.Ask.Resolve(ctx, ref)
		if err == nil {
			err = one(id)
		}
		switch {
		case err != nil && len(c.Item) == 1:
			return err
		case err != nil:
			on.Talk("%s: %v", ref, err)
			bad++
		}
	}
	switch bad {
	case 0:
		return nil
	case len(c.Item):
		return screen.ExitError
	}
	return screen.ExitSomeFailed
}

// all does something with the items of the target's deliveries of which of says so. One that cannot be, or cannot be read, is told,
// and the others are gone on with: exit code 4.
func (c *deliveries) all(ctx context.Context, on *screen.Screen, e *engine.Engine, of func(layout.Delivery) bool, one func(layout.ItemID) error) error {
	rows, err := e.Delivery.Rows(ctx, c.To, "")
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(r delivery.Row) bool { return r.State != layout.DeliveryUnreadable && !of(r.Delivery) })
	if len(rows) == 0 {
		on.Talk("there is no such delivery to %s", c.To)
		return nil
	}
	bad := false
	for _, r := range rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := one(r.Item); err != nil {
			on.Talk("%s: %v", r.Item.Short(), err)
			bad = true
		}
	}
	if bad {
		return screen.ExitSomeFailed
	}
	return nil
}

// are tells deliveries in a state.
func are(state string) func(layout.Delivery) bool {
	return func(d layout.Delivery) bool { return d.State == state }
}

// failed tells deliveries that failed, also those that are tried again later, and those not taken back.
func failed(d layout.Delivery) bool {
	return d.State == layout.DeliveryFailed || (d.State == layout.DeliveryReady || d.State == layout.DeliveryUnconfirmed) && !d.After.IsZero()
}

type deliveryApprove struct {
	deliveries
	Text string `name:"message" short:"m" aliases:"text" placeholder:"TEXT" help:"Why; stands in the history."`
}

// Run approves.
func (c *deliveryApprove) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return c.each(ctx, on, open, are(layout.DeliveryWaits), func(e *engine.Engine, id layout.ItemID) (string, error) {
		return layout.DeliveryReady, e.Delivery.Approve(ctx, e.Ledger.ByPerson(), id, c.To, c.Text)
	})
}

type deliveryRefuse struct {
	deliveries
	Text string `name:"message" short:"m" aliases:"text" placeholder:"TEXT" help:"Why; stands in the history."`
}

// Run refuses.
func (c *deliveryRefuse) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return c.each(ctx, on, open, are(layout.DeliveryWaits), func(e *engine.Engine, id layout.ItemID) (string, error) {
		return layout.DeliveryForbidden, e.Delivery.Refuse(ctx, e.Ledger.ByPerson(), id, c.To, c.Text)
	})
}

type deliveryRetry struct{ deliveries }

// Run has deliveries tried again.
func (c *deliveryRetry) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return c.each(ctx, on, open, failed, func(e *engine.Engine, id layout.ItemID) (string, error) {
		return e.Delivery.Retry(ctx, e.Ledger.ByPerson(), id, c.To)
	})
}

type deliveryWithdraw struct {
	deliveries
	Text string `name:"message" short:"m" aliases:"text" placeholder:"TEXT" help:"Why; stands in the history."`
}

// Run takes items back.
func (c *deliveryWithdraw) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return c.each(ctx, on, open, are(layout.DeliveryDelivered), func(e *engine.Engine, id layout.ItemID) (string, error) {
		err := e.Delivery.Withdraw(ctx, e.Ledger.ByPerson(), id, c.To, c.Text)
		if delivery.Away(err) {
			err = fmt.Errorf("%w; it is taken back by a run once the target is there", err)
		}
		return layout.DeliveryWithdrawn, err
	})
}

type deliveryRepublish struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run republishes; exit code 4 when something could not be taken back, or not be read.
func (c *deliveryRepublish) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		done, err := e.Delivery.Republish(ctx, func(phase string) {
			on.Talk("republishing: %s", strings.TrimSpace(phase))
		})
		if err != nil {
			return err
		}
		if err := c.print(on, done); err != nil {
			return err
		}
		unmarked, err := delivery.Unmarked(e.Root())
		if err != nil {
			return err
		}
		for _, u := range unmarked {
			on.Talk("warning: %v", u)
		}
		if done.Later > 0 {
			on.Talk("%s; runs take it back once the target is there", screen.CountVerb(done.Later, "item stays at a target that is away", "items stay at targets that are away"))
		}
		if done.Unreadable > 0 {
			on.Talk("of %s nothing was confirmed or taken back: once delivery.json is mended, republish again; list with: bagpipe delivery list --state unreadable", screen.CountVerb(done.Unreadable, "item that cannot be read", "items that cannot be read"))
		}
		if done.Failed+done.Unreadable > 0 {
			return screen.ExitSomeFailed
		}
		return nil
	})
}

func (c *deliveryRepublish) print(on *screen.Screen, done delivery.Republished) error {
	if c.JSON {
		return on.JSON(done)
	}
	fmt.Fprintf(on.Out, "%d delivered, %d to go or to approve, %d withdrawn, %d could not be withdrawn\n", done.Delivered, done.Added, done.Withdrawn, done.Failed)
	return nil
}
