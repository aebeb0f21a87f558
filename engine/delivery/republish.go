package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// The phases of a republication.
const (
	phaseUnconfirm = "unconfirm"
	phaseCompute   = "compute"
	phaseWithdraw  = "withdraw"
)

// republication is controls/delivery.json.
type republication struct {
	Schema int             `json:"schema"`
	Phase  string          `json:"phase"`
	By     string          `json:"by"`
	Begun  time.Time       `json:"begun"`
	Engine layout.EngineID `json:"engine"`
	Rules  string          `json:"rules"` // the digest of the rules that are computed by
}

// Republished is what a republication did.
type Republished struct {
	Delivered int `json:"delivered"` // what the targets hold at its end
	Added     int `json:"added"`     // what goes to a target, or waits
	Withdrawn int `json:"withdrawn"`
	Failed    int `json:"failed"` // could not be withdrawn, and stays unconfirmed
	Later     int `json:"later"`  // of those: runs take it back, once the target is there

	Unreadable int `json:"unreadable"` // items whose delivery.json cannot be read: of them nothing was confirmed or withdrawn
}

func readRepublication(r gitstore.Reader) (*republication, error) {
	data, err := ledger.ReadOptional(r, layout.DeliveryControl)
	if err != nil || data == nil {
		return nil, err
	}
	var p republication
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("read %s: %w", layout.DeliveryControl, err)
	}
	if p.Schema > 1 {
		return nil, &layout.SchemaError{File: layout.DeliveryControl, Schema: p.Schema, Known: 1}
	}
	return &p, nil
}

// note commits how far a republication is; next nil ends it. next may refuse.
func note(ctx context.Context, l *ledger.Ledger, who ledger.Actor, what string, next func(*republication) (*republication, error)) error {
	if l.ReadOnly {
		return gitstore.ErrReadOnly
	}
	_, err := l.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		was, err := readRepublication(r)
		if err != nil {
			return nil, err
		}
		is, err := next(was)
		if err != nil {
			return nil, err
		}
		var data []byte
		if is != nil {
			if data, err = layout.EncodeJSON(is); err != nil {
				return nil, err
			}
		}
		return &gitstore.Change{Files: map[string][]byte{layout.DeliveryControl: data}, Author: who.Author,
			Message: ledger.Message("delivery: "+what, "", []ledger.Trailer{{"Bagpipe-Agent", who.Agent}})}, nil
	})
	return err
}

// Republish has all that is delivered confirmed by the rules in force, or withdrawn. One that
// is under way by an engine that is gone is gone on with.
func (k *Keeper) Republish(ctx context.Context, told func(phase string)) (done Republished, err error) {
	k.turn.Lock()
	defer k.turn.Unlock()
	if _, err := k.ledger.Seat.Engine(); err != nil {
		return done, err
	}
	b, err := bookInForce(ctx, k)
	if err := cmp.Or(err, b.mistake); err != nil {
		return done, err
	}
	who := k.ledger.ByPerson()
	err = note(ctx, k.ledger, who, "republishing", func(was *republication) (*republication, error) {
		switch {
		case was == nil:
			return &republication{Schema: 1, Phase: phaseUnconfirm, By: who.Agent, Begun: k.ledger.Now(), Engine: k.ledger.ID}, nil
		case was.Engine != k.ledger.ID && k.ledger.Seat.MayBeAlive(was.Engine):
			return nil, fault.New(fault.Busy, fmt.Sprintf("it is being republished since %s, by %s", layout.FormatTime(was.Begun), was.By))
		}
		was.Engine = k.ledger.ID
		return was, nil
	})
	if err != nil {
		return done, err
	}
	return k.goOn(ctx, told)
}

// Republishing tells of a republication that has not ended; "": there is none.
func Republishing(k *Keeper) (text string, err error) {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	p, err := readRepublication(v)
	if err != nil || p == nil {
		return "", err
	}
	text = fmt.Sprintf("begun %s by %s, phase %s", layout.FormatTime(p.Begun), p.By, p.Phase)
	if !k.ledger.Seat.MayBeAlive(p.Engine) {
		text += "; it was cut short, and the next run goes on with it"
	}
	return text, nil
}

// resumeRepublication goes on with what an engine that is gone began.
func (k *Keeper) resumeRepublication(ctx context.Context) error {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return err
	}
	p, err := readRepublication(v)
	if err != nil || p == nil || p.Engine != k.ledger.ID && k.ledger.Seat.MayBeAlive(p.Engine) {
		return err
	}
	err = note(ctx, k.ledger, k.ledger.ByEngine(), "goes on republishing", func(was *republication) (*republication, error) {
		if was == nil || was.Engine != p.Engine {
			return was, nil // another engine was faster
		}
		was.Engine = k.ledger.ID
		return was, nil
	})
	if err != nil {
		return err
	}
	if v, err = k.ledger.Store.Tip(); err != nil {
		return err
	}
	if p, err = readRepublication(v); err != nil || p == nil || p.Engine != k.ledger.ID {
		return err
	}
	_, err = k.goOn(ctx, func(string) {})
	return err
}

// goOn does the phases that are left. Each may be done again.
func (k *Keeper) goOn(ctx context.Context, told func(phase string)) (done Republished, err error) {
	for {
		v, err := k.ledger.Store.Tip()
		if err != nil {
			return done, err
		}
		p, err := readRepublication(v)
		if err != nil || p == nil {
			return done, err
		}
		b, err := bookInForce(ctx, k)
		if err := cmp.Or(err, b.mistake); err != nil {
			return done, err
		}
		next := p.Phase
		told(p.Phase)
		switch p.Phase {
		case phaseUnconfirm:
			next, err = phaseCompute, k.unconfirm(ctx, v)
		case phaseCompute:
			next, err = phaseWithdraw, k.compute(ctx, b, &done)
		case phaseWithdraw:
			if p.Rules != b.digest { // they changed: by those now some of it may be confirmed
				next = phaseCompute
			} else if next, err = "", k.withdrawAll(ctx, b, &done); err == nil {
				what := "republished"
				if done.Unreadable > 0 {
					what += " all but " + layout.Count(done.Unreadable, "item") + " that cannot be read"
				}
				return done, note(ctx, k.ledger, k.ledger.ByEngine(), what, func(*republication) (*republication, error) { return nil, nil })
			}
		default:
			err = fmt.Errorf("%s: phase %q is not known", layout.DeliveryControl, p.Phase)
		}
		if err != nil {
			return done, err
		}
		err = note(ctx, k.ledger, k.ledger.ByEngine(), "republishing: "+next, func(was *republication) (*republication, error) {
			if was == nil || was.Engine != k.ledger.ID {
				return nil, fault.New(fault.Busy, "another engine took the republication over")
			}
			was.Phase = next
			if next == phaseWithdraw {
				was.Rules = b.digest
			}
			return was, nil
		})
		if err != nil {
			return done, err
		}
	}
}

// unconfirm makes all that is delivered unconfirmed; what an engine that is gone was sending is held
// against the rules like the rest.
func (k *Keeper) unconfirm(ctx context.Context, v gitstore.View) error {
	change := func(o *object) (changed bool) {
		for _, d := range o.delivery.Targets {
			switch {
			case d.State == layout.DeliveryDelivered:
				d.State = layout.DeliveryUnconfirmed
			case !orphaned(k, d):
				continue
			}
			d.By, d.At, changed = k.ledger.ByEngine().Agent, k.ledger.Now(), true
		}
		return changed
	}
	items, err := k.those(ctx, v, change)
	if err != nil {
		return err
	}
	return k.commit(ctx, items, "unconfirmed", change)
}

// those are the items of which something holds.
func (k *Keeper) those(ctx context.Context, v gitstore.View, is func(*object) bool) (items []layout.ItemID, err error) {
	var mu sync.Mutex // guards items
	err = each(ctx, k.ledger, v, gitstore.Hash{}, func(o *object) {
		if !is(o) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		items = append(items, o.id)
	})
	slices.Sort(items)
	return items, err
}

// compute holds all objects against the rules. What another engine is sending is due: once that has ended it is held against them,
// and taken back by a run where none wants it.
func (k *Keeper) compute(ctx context.Context, b book, done *Republished) error {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return err
	}
	lookAnew(k)
	b.all = true
	changed, err := k.weighSince(ctx, v, gitstore.Hash{}, b)
	if err != nil {
		return err
	}
	if err := k.commit(ctx, changed, "computed", b.weigher(k.ledger)); err != nil {
		return err
	}
	k.at = v.Tree()
	if err := k.writeLook(); err != nil {
		return err
	}
	if v, err = k.ledger.Store.Tip(); err != nil {
		return err
	}
	var mu sync.Mutex // guards done
	done.Delivered, done.Added = 0, 0
	return each(ctx, k.ledger, v, gitstore.Hash{}, func(o *object) {
		mu.Lock()
		defer mu.Unlock()
		for _, d := range o.delivery.Targets {
			switch d.State {
			case layout.DeliveryDelivered:
				done.Delivered++
			case layout.DeliveryReady, layout.DeliveryWaits, layout.DeliverySending:
				done.Added++
			}
		}
	})
}

// withdrawAll takes back what is still unconfirmed: the target first, then the record.
func (k *Keeper) withdrawAll(ctx context.Context, b book, done *Republished) error {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return err
	}
	var bad atomic.Int64
	items, err := k.those(ctx, v, func(o *object) bool {
		if o.bad != nil {
			bad.Add(1)
		}
		return slices.ContainsFunc(slices.Collect(maps.Values(o.delivery.Targets)), func(d *layout.Delivery) bool { return d.State == layout.DeliveryUnconfirmed })
	})
	if err != nil {
		return err
	}
	done.Unreadable = int(bad.Load())
	failed := map[string]int{} // items, by what keeps them: a target that left the settings keeps all in the same words
	defer func() {
		for _, text := range slices.Sorted(maps.Keys(failed)) {
			if n := failed[text]; n > 1 {
				text += "; so it is of " + layout.Count(n, "item")
			}
			k.ledger.Warn(text)
		}
	}()
	for _, id := range items {
		o, err := readObject(v, id)
		if err != nil {
			return err
		}
		if o == nil {
			continue
		}
		for _, to := range slices.Sorted(maps.Keys(o.delivery.Targets)) {
			if o.delivery.Targets[to].State != layout.DeliveryUnconfirmed {
				continue
			}
			if err := k.withdrawOne(ctx, b, id, to, done, func(text string) { failed[text]++ }); err != nil {
				return err
			}
		}
	}
	return nil
}

// withdrawOne takes one item back, unless a rule wants it by now. Of a target that is away that is due, and
// left to Pass; one that refuses is asked again by the next republication.
func (k *Keeper) withdrawOne(ctx context.Context, b book, id layout.ItemID, to layout.Name, done *Republished, warn func(text string)) error {
	began, wanted := false, false
	failure, err := takeBack(ctx, k, id, to, k.ledger.ByEngine(), func(o *object, d *layout.Delivery) error {
		is := b.weighed(o, to, k.ledger.Now())
		wanted = d.State == layout.DeliveryUnconfirmed && is.State != d.State
		if began = !wanted && d.State == layout.DeliveryUnconfirmed && (d.Engine == "" || leftBack(k, d)); !began {
			return errNothing // it was confirmed, or another engine is at it
		}
		if d.Due = !wantedBack(d); !d.Due {
			d.Decision.Kept = false
		}
		return nil
	})
	if err == nil && wanted {
		return k.commit(ctx, []layout.ItemID{id}, "confirmed", b.weigher(k.ledger))
	}
	switch {
	case err != nil || !began:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case failure != nil:
		if done.Failed++; Away(failure) {
			done.Later++
		}
		warn(failure.Error())
	default:
		done.Withdrawn++
	}
	return nil
}
