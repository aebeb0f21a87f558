package guard

import (
	"context"
	"maps"
	"slices"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// open gives an item's breaches before a commit that are to be answered. Of a merge they are
// those of all its parents, but for what one of them answered.
func (x *examiner) open(ctx context.Context, main gitstore.Hash, at *branch, others map[gitstore.Hash]*branch, id layout.ItemID) (open []breach, err error) {
	if len(others) == 0 {
		return slices.Clone(at.breaches(id)), nil
	}
	rest := slices.SortedFunc(maps.Keys(others), func(a, b gitstore.Hash) int { return strings.Compare(a.String(), b.String()) })
	sides := append([]gitstore.Hash{main}, rest...)
	of := func(side gitstore.Hash) []breach {
		if side == main {
			return at.breaches(id)
		}
		return others[side].breaches(id)
	}
	for _, side := range sides {
		for _, b := range of(side) {
			if has(open, b) {
				continue
			}
			done := false
			for _, other := range sides {
				if !done && !has(of(other), b) {
					if done, err = x.answered(ctx, other, b); err != nil {
						return nil, err
					}
				}
			}
			if !done {
				open = append(open, b)
			}
		}
	}
	return open, nil
}

// answered reports whether a parent that has no such breach has the commit that made it. One
// that does not descend from where the window begins knows nothing of what was before it.
func (x *examiner) answered(ctx context.Context, parent gitstore.Hash, b breach) (bool, error) {
	if !x.fromHere[parent] && !x.within[b.commit.Hash] {
		return false, nil
	}
	base, err := x.g.ledger.Store.Base(ctx, b.commit.Hash, parent)
	return base == b.commit.Hash, err
}

// breaches are those of an item that are to be answered.
func (b *branch) breaches(id layout.ItemID) []breach {
	if v := b.items[id]; v != nil {
		return v.breaches
	}
	return nil
}

// has reports whether a breach is among others.
func has(all []breach, b breach) bool {
	return slices.ContainsFunc(all, func(o breach) bool { return o.commit.Hash == b.commit.Hash && slices.Equal(o.what, b.what) })
}
