package fixity

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps/target"
)

// Recovered is what a recovery did for one item.
type Recovered struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection,omitempty"`
	Label      string        `json:"label,omitempty"`
	Versions   []int         `json:"versions"` // that were recovered; none: the item is in the workspace
	Bytes      string        `json:"bytes,omitempty"`
	Unknown    []string      `json:"unknown"` // what a deposit does not tell
}

// Recovery says what is recovered.
type Recovery struct {
	From    layout.Name
	Items   []layout.ItemID // none: all that the target holds
	Records bool            // alone, and no bytes
}

// Recover brings items that the workspace does not have back from their bags on a target:
// bytes first, then their records, a commit a version. The rules are:
//
//   - an item that is in the workspace is passed over: a recovery that was interrupted goes on;
//   - a bag is validated before anything of it counts, and copies of all versions are recorded
//     as verified;
//   - records are those that stand in the bag, to the letter, but for execution.json: the
//     steps that ended after the bag was made, its own and the deposit, end anew;
//   - errors of one item are joined, and the others go on, unless the target is down.
//
// A crash leaves an item's folder without a record, and a mark that a recovery made it: the next
// makes it anew. Files that no recovery put there are left, and the item is refused.
func (c *Checks) Recover(ctx context.Context, o Recovery, told func(Recovered)) error {
	if c.ledger.ReadOnly {
		return gitstore.ErrReadOnly
	}
	if err := knownTarget(c, o.From); err != nil {
		return err
	}
	t, err := c.target(o.From)
	if err != nil {
		return err
	}
	r := &recovery{Checks: c, Recovery: o, t: t, told: told}
	err = t.Walk(ctx, func(f target.Found) error {
		if len(o.Items) > 0 && !slices.Contains(o.Items, f.Item) {
			return nil
		}
		r.seen++
		if len(r.found) > 0 && r.found[0].Item != f.Item {
			if err := r.next(ctx); err != nil {
				return err
			}
		}
		r.found = append(r.found, f)
		return nil
	})
	if err == nil {
		err = r.next(ctx)
	}
	if err == nil && r.seen == 0 {
		err = fault.New(fault.NotFound, fmt.Sprintf("target %s holds no such bags", o.From))
	}
	return errors.Join(append(r.errs, err)...)
}

// recovery is one recovery from a target.
type recovery struct {
	*Checks
	Recovery
	t     target.Target
	told  func(Recovered)
	seen  int
	found []target.Found // of one item
	errs  []error
}

// next recovers the item whose copies were found; its own error ends nothing else.
func (r *recovery) next(ctx context.Context) error {
	found := r.found
	r.found = nil
	if len(found) == 0 {
		return ctx.Err()
	}
	done, err := r.item(ctx, found)
	var down *target.Down
	switch {
	case ctx.Err() != nil, errors.As(err, &down):
		return err
	case err != nil:
		r.errs = append(r.errs, fmt.Errorf("item %s: %w", found[0].Item.Short(), err))
	}
	if done != nil {
		r.told(*done)
	}
	return nil
}

// item recovers one item: of each version the newest bag. A version before the last whose
// bag is not sound is left out, and told of.
func (r *recovery) item(ctx context.Context, found []target.Found) (*Recovered, error) {
	id := found[0].Item
	out := &Recovered{Item: id, Versions: []int{}, Unknown: []string{}}
	if there, err := r.ledger.Exists(id); there || err != nil {
		return out, err
	}
	newest := map[int]target.Found{}
	last := 0
	for _, f := range found {
		newest[f.Version], last = f, max(last, f.Version)
	}
	var all []*bagged
	for version := 1; version <= last; version++ {
		f, there := newest[version]
		if !there {
			out.Unknown = append(out.Unknown, fmt.Sprintf("version %d, which is not there", version))
			continue
		}
		b, err := r.bagged(ctx, f, version == last, out)
		if err != nil && version < last && ctx.Err() == nil {
			out.Unknown = append(out.Unknown, fmt.Sprintf("version %d: %v", version, err))
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	for i, b := range all {
		if err := r.commit(ctx, b, all[:i+1]); err != nil {
			return nil, err
		}
		out.Versions = append(out.Versions, b.version)
	}
	return out, disk.RemoveTree(r.markOf(id))
}
