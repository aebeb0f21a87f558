package fixity

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/steps/target"
)

// dueCopies are the copies of one item that their targets' fixity: asks to look at again.
type dueCopies struct {
	item   layout.ItemID
	oldest time.Time // when the one was verified that was verified longest ago
	copies map[layout.Name][]int
}

// Due checks the copies on targets that were not verified for as long as their target's
// fixity: says, those verified longest ago first, and records what was found, one commit an
// item, and mends as Run does. Copies beside these, and those of the workspace, are not
// looked at, nor those of a target whose fixity: hours: are over. Items that are being worked on are passed over, and counted; ctx ends it between
// two items, and what was checked stays so.
func (c *Checks) Due(ctx context.Context, mend bool, told func(Result)) (passedOver int, err error) {
	if c.ledger.ReadOnly {
		return 0, gitstore.ErrReadOnly
	}
	all, err := listDue(c)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, d := range all {
		r, err := checkDue(ctx, c, d)
		if err == nil && mend {
			r, err = c.mend(ctx, r)
		}
		if err == nil && len(r.noted) > 0 { // of targets that are down nothing is known
			err = c.record(ctx, r)
		}
		switch {
		case ctx.Err() != nil:
			return passedOver, errors.Join(append(errs, ctx.Err())...)
		case errors.Is(err, errAtWork):
			passedOver++
		case err != nil:
			errs = append(errs, err)
		default:
			told(r)
		}
	}
	return passedOver, errors.Join(errs...)
}

// listDue reads the records of all items.
func listDue(c *Checks) ([]dueCopies, error) {
	set, now := c.settings.Current().Settings, c.ledger.Now()
	every := map[layout.Name]time.Duration{}
	for name, t := range set.Targets {
		if t.Fixity.Every > 0 && t.Fixity.Hours.Hold(now.Local()) {
			every[layout.Name(name)] = time.Duration(t.Fixity.Every)
		}
	}
	asked := func(t target.Config) bool { return t.Fixity.Every > 0 }
	if len(every) == 0 && slices.ContainsFunc(slices.Collect(maps.Values(set.Targets)), asked) {
		return nil, nil // not at this hour
	}
	if len(every) == 0 {
		return nil, fault.New(fault.NotFound, "no target of the settings has fixity: {every: …}")
	}
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	var all []dueCopies
	for it := range c.index.Loaded().Items() {
		d, err := ledger.ReadDeposits(v, it.ID)
		if err != nil {
			return nil, err
		}
		due := dueCopies{item: it.ID, copies: map[layout.Name][]int{}}
		for name, after := range every {
			for version, copied := range d.Targets[name] {
				if now.Sub(copied.Verified) < after {
					continue
				}
				due.copies[name] = append(due.copies[name], version)
				if due.oldest.IsZero() || copied.Verified.Before(due.oldest) {
					due.oldest = copied.Verified
				}
			}
		}
		if len(due.copies) > 0 {
			all = append(all, due)
		}
	}
	slices.SortFunc(all, func(a, b dueCopies) int {
		return cmp.Or(a.oldest.Compare(b.oldest), cmp.Compare(mixed(a.item), mixed(b.item)))
	})
	return all, nil
}

// checkDue looks at the due copies of one item, each at its target's level.
func checkDue(ctx context.Context, c *Checks, d dueCopies) (Result, error) {
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return Result{}, err
	}
	r, err := c.read(v, d.item)
	if err != nil {
		return Result{}, err
	}
	if r.atWork() {
		return Result{}, errAtWork
	}
	out := Result{Item: d.item, Collection: r.Manifest.Collection, Label: r.Manifest.Label, Copies: map[string]layout.FixityCheck{}, targetsOnly: true}
	set := c.settings.Current().Settings
	return out, c.targetCopies(ctx, r, &out, func(name layout.Name, version int) (target.Level, bool) {
		asked := set.Targets[string(name)].Fixity
		return cmp.Or(asked.Level, target.Read), slices.Contains(d.copies[name], version) && asked.Hours.Hold(c.ledger.Now().Local())
	})
}
