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
	"bagpipe/layout"
	"bagpipe/steps/target"
)

// dueCopies are the copies of one item that their targets' fixity: asks to look at again.
type dueCopies struct {
	item   layout.ItemID
	target layout.Name // of the one that was verified longest ago
	oldest time.Time   // when that was
	copies map[layout.Name][]int
}

// Due checks the copies on targets that were not verified for as long as their target's
// fixity: says, those verified longest ago first, and records what was found, one commit an
// item, and mends as Run does. Copies beside these, and those of the workspace, are not
// looked at, nor those of a target whose fixity: hours: are over. Items that are being worked on
// are passed over, and counted; ctx ends it between two items, and what was checked stays so. yield,
// unless nil, is called before each item, and may wait.
func (c *Checks) Due(ctx context.Context, mend bool, yield func(context.Context), told func(Result)) (passedOver int, err error) {
	if c.ledger.ReadOnly {
		return 0, gitstore.ErrReadOnly
	}
	if !c.Asked() {
		return 0, fault.New(fault.NotFound, "no target of the settings has fixity: {every: …}")
	}
	if err := c.loadBook(); err != nil {
		return 0, err
	}
	var left []*dueCopies
	defer func() {
		for _, d := range left {
			c.book.again(d)
		}
	}()
	var errs []error
	begun := c.ledger.Now() // what is looked at now is not due again in this look
	away := map[layout.Name]bool{}
	for ctx.Err() == nil {
		every := c.dueAfter()
		maps.DeleteFunc(every, func(name layout.Name, _ time.Duration) bool { return away[name] })
		d := c.book.next(begun, every)
		if d == nil {
			break
		}
		left = append(left, d)
		if yield != nil {
			if yield(ctx); ctx.Err() != nil {
				break
			}
		}
		r, err := alone(ctx, c, mend, d.item, func() (Result, error) {
			r, err := checkDue(ctx, c, *d)
			for name, versions := range d.copies {
				if len(versions) > 0 && err == nil && r.noted[name] == nil {
					away[name] = true
				}
			}
			if err == nil && mend {
				r = heal(ctx, c, r, nil)
			}
			if err == nil && len(r.noted) > 0 { // of targets that are down nothing is known
				err = c.record(ctx, r)
			}
			return r, err
		})
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errAtWork):
			passedOver++
		case err != nil:
			errs = append(errs, err)
		default:
			if r.unhealed != nil {
				errs = append(errs, r.unhealed)
			}
			told(r)
		}
	}
	return passedOver, errors.Join(append(errs, ctx.Err())...)
}

// Asked reports whether a target's copies are to be looked at again.
func (c *Checks) Asked() bool {
	for _, t := range c.settings.Current().Settings.Targets {
		if t.Fixity.Every > 0 {
			return true
		}
	}
	return false
}

// dueAfter is after how long copies are due, of the targets that may be looked at at this hour.
func (c *Checks) dueAfter() map[layout.Name]time.Duration {
	every := map[layout.Name]time.Duration{}
	for name, t := range c.settings.Current().Settings.Targets {
		if t.Fixity.Every > 0 && t.Fixity.Hours.Hold(c.ledger.Now().Local()) {
			every[layout.Name(name)] = time.Duration(t.Fixity.Every)
		}
	}
	return every
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
	err = c.targetCopies(ctx, r, &out, func(name layout.Name, version int) (target.Level, bool) {
		asked := set.Targets[string(name)].Fixity
		return cmp.Or(asked.Level, target.Read), slices.Contains(d.copies[name], version) && asked.Hours.Hold(c.ledger.Now().Local())
	})
	if err != nil {
		return out, err
	}
	broken := map[layout.Name]bool{} // of an OCFL object the other versions may be, too
	for name, versions := range out.noted {
		for _, copied := range versions {
			broken[name] = broken[name] || copied.Layout == target.LayoutOCFL && copied.Outcome == layout.FixityFailed
		}
	}
	return out, c.targetCopies(ctx, r, &out, func(name layout.Name, version int) (target.Level, bool) {
		_, looked := out.noted[name][version]
		return target.Read, broken[name] && !looked
	})
}
