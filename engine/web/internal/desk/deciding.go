package desk

import (
	"context"
	"fmt"

	"bagpipe/engine/fault"
	"bagpipe/engine/schedule"
	"bagpipe/engine/warrant"
	"bagpipe/engine/web/access"
	"bagpipe/layout"
)

// Decided is what became of a decision on a delivery.
type Decided struct {
	Item   layout.ItemID `json:"item"`
	Target layout.Name   `json:"target"`
	State  string        `json:"state"`
}

// DecideDelivery approves, refuses, retries or withdraws the delivery of an item to a target, in the
// name of who asks.
func (d *Desk) DecideDelivery(ctx context.Context, ref string, to layout.Name, act, message string) (Decided, error) {
	by, err := d.by(ctx, access.Operator)
	if err != nil {
		return Decided{}, err
	}
	id, err := d.Item(ctx, ref)
	if err != nil {
		return Decided{}, err
	}
	out := Decided{Item: id, Target: to}
	switch act {
	case "approve":
		out.State, err = layout.DeliveryReady, d.Delivery.Approve(ctx, by, id, to, message)
	case "refuse":
		out.State, err = layout.DeliveryForbidden, d.Delivery.Refuse(ctx, by, id, to, message)
	case "retry":
		out.State, err = d.Delivery.Retry(ctx, by, id, to)
	case "withdraw": // what was begun at the target ends there, also when who asked has gone
		out.State, err = layout.DeliveryWithdrawn, d.Delivery.Withdraw(context.WithoutCancel(ctx), by, id, to, message)
	default:
		err = fault.New(fault.Invalid, fmt.Sprintf("act %q: expected approve, refuse, retry or withdraw", act))
	}
	return out, err
}

// Said is a word on a proposal to remove items for good.
type Said struct {
	Proposal string `json:"proposal"`
	Says     string `json:"says"`
}

// SayOnDisposal commits the word of who asks, a person who reaches all collections, on a proposal.
func (d *Desk) SayOnDisposal(ctx context.Context, key, act, message string) (Said, error) {
	by, err := d.by(ctx, access.Operator)
	if err == nil {
		err = d.Whole(ctx)
	}
	if err == nil && Who(ctx).Program {
		err = ErrProgram
	}
	if err != nil {
		return Said{}, err
	}
	says := map[string]string{"approve": warrant.Approved, "refuse": warrant.Refused}[act]
	if says == "" {
		return Said{}, fault.New(fault.Invalid, fmt.Sprintf("act %q: expected approve or refuse", act))
	}
	if says == warrant.Refused && message == "" {
		return Said{}, fault.New(fault.Invalid, "To refuse needs a reason: say why the items are to stay.")
	}
	row, err := d.Disposal.Row(ctx, key)
	if err != nil {
		return Said{}, err
	}
	return Said{row.Key, says}, d.Disposal.Say(ctx, by, row.Key, says, message)
}

// Switched is what became of an order for a schedule.
type Switched struct {
	Schedule string `json:"schedule"`
	Changed  bool   `json:"changed"` // false: it was so already
}

// OrderSchedule starts, stops or restarts a schedule, or fires it at once, in the name of who asks. now
// ends also what runs; a firing is not waited for.
func (d *Desk) OrderSchedule(ctx context.Context, name, act string, now bool) (Switched, error) {
	out := Switched{Schedule: name}
	by, err := d.by(ctx, access.Admin)
	if err == nil {
		err = d.Whole(ctx)
	}
	if err != nil {
		return out, err
	}
	o := schedule.Order{Status: schedule.Started, Now: now}
	switch act {
	case "start":
		o.Now = false
	case "stop":
		o.Status = schedule.Stopped
	case "restart":
		o.Anew = true
	case "fire":
		out.Changed = true
		return out, d.Schedule.Hand(ctx, by, name)
	default:
		return out, fault.New(fault.Invalid, fmt.Sprintf("act %q: expected start, stop, restart or fire", act))
	}
	out.Changed, err = d.Schedule.Set(ctx, by, name, o)
	return out, err
}
