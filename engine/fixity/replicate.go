package fixity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/steps"
	"bagpipe/steps/target"
)

// Copied is what a copy to a target did for one item.
type Copied struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	Versions   []int         `json:"versions"` // that were copied; none: all were there
	Found      []int         `json:"found"`    // that stood there unrecorded, and were read and recorded
	From       string        `json:"from,omitempty"`
}

// Copy adds copies of all versions of items on a target, from any sound copy; no items are
// all that were deposited. What is there already is passed over. told is called item by item;
// errors of one item are joined, and the others go on, unless the target is down. Items that
// are being worked on are passed over, and counted.
func (c *Checks) Copy(ctx context.Context, to layout.Name, items []layout.ItemID, told func(Copied)) (passedOver int, err error) {
	if c.ledger.ReadOnly {
		return 0, gitstore.ErrReadOnly
	}
	if err := knownTarget(c, to); err != nil {
		return 0, err
	}
	t, err := c.target(to)
	if err != nil {
		return 0, err
	}
	k := copying{Checks: c, to: to, t: t}
	all := len(items) == 0
	if all {
		if err := k.look(ctx); err != nil {
			return 0, err
		}
		for it := range c.index.Loaded().Items() {
			if !it.Disposed() {
				items = append(items, it.ID)
			}
		}
	}
	var errs []error
	for _, id := range items {
		done, err := k.item(ctx, id, all)
		var down *target.Down
		switch {
		case ctx.Err() != nil, errors.As(err, &down), fault.Is(err, fault.Busy):
			return passedOver, errors.Join(append(errs, err)...)
		case errors.Is(err, errAtWork):
			passedOver++
		case err != nil:
			errs = append(errs, fmt.Errorf("item %s: %w", id.Short(), err))
		case done != nil:
			told(*done)
		}
	}
	return passedOver, errors.Join(errs...)
}

// copying is one copy of items to a target.
type copying struct {
	*Checks
	to layout.Name
	t  target.Target

	stands map[layout.ItemID][]int // versions of which a copy stands there, whatever the records say; of all items alone
}

// look notes what stands on the target: after a recovery from another one no record says so.
func (c *copying) look(ctx context.Context) error {
	c.stands = map[layout.ItemID][]int{}
	return c.t.Walk(ctx, func(f target.Found) error {
		c.stands[f.Item] = append(c.stands[f.Item], f.Version)
		return nil
	})
}

// item copies what is not there; nil where an item was not deposited, and not named.
func (c copying) item(ctx context.Context, id layout.ItemID, unnamed bool) (*Copied, error) {
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	r, err := c.read(v, id)
	if err != nil {
		return nil, err
	}
	switch {
	case !r.deposited && unnamed:
		return nil, nil
	case !r.deposited:
		return nil, fault.New(fault.Refused, "it was not deposited yet", fault.Remedy{Verb: fault.Why, Item: id})
	case r.atWork():
		return nil, errAtWork
	}
	out := &Copied{Item: id, Collection: r.Manifest.Collection, Label: r.Manifest.Label, Versions: []int{}, Found: []int{}}
	made := map[layout.Name]map[int]layout.DepositCopy{}
	for version := 1; version <= max(r.Manifest.Version, 1); version++ {
		if copied, there := r.targets[c.to][version]; there && !c.gone(ctx, copied) {
			continue
		}
		if err := c.version(ctx, r, version, out, made); err != nil {
			return nil, err
		}
	}
	if len(made) == 0 {
		return out, nil
	}
	return out, c.commit(ctx, out, made)
}

// gone reports whether nothing is there of a copy that the last look found damaged.
func (c copying) gone(ctx context.Context, copied layout.DepositCopy) bool {
	if copied.Outcome != layout.FixityFailed {
		return false
	}
	_, _, err := c.t.Check(ctx, copied, target.Exists)
	return absent(err)
}

func (c copying) version(ctx context.Context, r *record, version int, out *Copied, made map[layout.Name]map[int]layout.DepositCopy) (err error) {
	good, err := c.sound(ctx, r, version, "", nil, "")
	if absent(err) && version < max(r.Manifest.Version, 1) {
		return nil // a version that was never deposited
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, good.drop()) }()
	note := func(name layout.Name, t target.Target) error {
		copied, err := t.Put(ctx, bagFor(c.Checks, r, version, good.dir, "copy", r.targets[name]))
		if err != nil {
			return err
		}
		if made[name] == nil {
			made[name] = map[int]layout.DepositCopy{}
		}
		made[name][version] = copied
		return nil
	}
	if len(r.targets) == 0 && c.to != steps.StoreTarget { // from now on the record has the store's, too
		store, err := c.target(steps.StoreTarget)
		if err == nil {
			err = note(steps.StoreTarget, store)
		}
		if err != nil {
			return fmt.Errorf("target %s: %w", steps.StoreTarget, err)
		}
	}
	if err := note(c.to, c.t); err != nil {
		return fmt.Errorf("target %s: %w", c.to, err)
	}
	if _, recorded := r.targets[c.to][version]; !recorded && slices.Contains(c.stands[r.Manifest.Item], version) {
		out.Found = append(out.Found, version)
		return nil
	}
	out.Versions, out.From = append(out.Versions, version), good.from
	return nil
}

// commit commits the copies that were made of an item.
func (c copying) commit(ctx context.Context, out *Copied, made map[layout.Name]map[int]layout.DepositCopy) error {
	who, id := c.ledger.ByPerson(), out.Item
	return c.ledger.Transact(ctx, id, func(v gitstore.Reader) (*gitstore.Change, error) {
		d, err := ledger.ReadDeposits(v, id)
		if err != nil {
			return nil, err
		}
		var text string
		for _, name := range slices.Sorted(maps.Keys(made)) {
			for _, version := range slices.Sorted(maps.Keys(made[name])) {
				d.Note(name, version, made[name][version])
				text += fmt.Sprintf("%s: version %d: %s\n", name, version, made[name][version].Place)
			}
		}
		data, err := d.Encode()
		if err != nil {
			return nil, err
		}
		subject := fmt.Sprintf("deposit: copied %s (%s/%s)", id, out.Collection, ledger.Clip(out.Label, 100))
		return &gitstore.Change{Files: map[string][]byte{layout.ItemDir(id) + "/" + layout.DepositsJSON: data}, Author: who.Author,
			Message: ledger.Message(subject, text, []ledger.Trailer{{"Bagpipe-Item", string(id)}, {"Bagpipe-Target", string(c.to)}, {"Bagpipe-Agent", who.Agent}})}, nil
	})
}
