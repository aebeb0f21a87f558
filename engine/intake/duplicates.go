package intake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

// The rules are: a drop is a duplicate when an item was made of a drop with the same
// digest: of a file its bytes, of a folder the sorted names, sizes and digests of its
// files. An inbox's policy says what becomes of it. It is asked before the drop moves
// to its item's folder, and once more within the transaction that makes the item, as
// another engine, or this one, may have been faster; one that is refused only there
// goes back into the intake and is rejected from it. Of drops of one group with one
// digest the first goes first.

// Rules that a known drop breaks.
const (
	ruleDuplicate  = "duplicate"
	ruleIdentifier = "identifier"
)

// knownError refuses a drop that is known already.
type knownError struct {
	rule string
	text string
}

func (k *knownError) Error() string { return k.text }

// asks tells whether what is known must be looked at for such a drop.
func asks(policy string, m *layout.Manifest) bool {
	return policy == settings.DupReject || policy == settings.DupFlag || len(m.Identifiers) > 0 || len(m.Originals) > 0
}

// judgeKnown refuses a new item, or flags it, by what is known at r.
func (k *known) judgeKnown(r gitstore.Reader, m *layout.Manifest, policy string) error {
	if err := k.judgeOriginals(r, m); err != nil {
		return err
	}
	if err := k.judgeContent(r, m, policy); err != nil {
		return err
	}
	return k.judgeIdentifiers(r, m)
}

func (k *known) judgeContent(r gitstore.Reader, m *layout.Manifest, policy string) error {
	if policy == settings.DupReject || policy == settings.DupFlag {
		same, err := k.holders(r, digestKey(m.Source.Digest), m.Item, func(o *layout.Manifest) bool {
			return o.Source.Digest == m.Source.Digest && o.Parent == nil
		})
		if err != nil {
			return err
		}
		if len(same) > 0 && policy == settings.DupReject {
			return &knownError{ruleDuplicate, "the same content is in " + nameItem(same[0]) + " already"}
		}
		if len(same) > 0 {
			m.Source.DuplicateOf = same[0].Item
		}
	}
	return nil
}

func (k *known) judgeIdentifiers(r gitstore.Reader, m *layout.Manifest) error {
	for _, kind := range slices.Sorted(maps.Keys(m.Identifiers)) {
		value := m.Identifiers[kind]
		same, err := k.holders(r, identifierKey(kind, value), m.Item, func(o *layout.Manifest) bool {
			return o.Identifiers[kind] == value
		})
		if err != nil {
			return err
		}
		if len(same) > 0 {
			return &knownError{ruleIdentifier, fmt.Sprintf("%s %s is that of %s already", kind, ledger.Clip(ledger.Printable(value), 200), nameItem(same[0]))}
		}
	}
	return nil
}

func nameItem(m layout.Manifest) string {
	return fmt.Sprintf("item %s (%s/%s, taken in %s)", m.Item, m.Collection, m.Label, layout.FormatTime(m.Created))
}

// guardKnown is what registerItem asks within its transaction: that the item is not
// known by then. It notes the item, so that the next of its group finds it.
func (in *Intake) guardKnown(ctx context.Context, m *layout.Manifest) (func(gitstore.Reader, *layout.Manifest) error, error) {
	policy := in.settings.Current().Settings.Drops(m.Collection).Duplicates
	if !asks(policy, m) {
		return nil, nil
	}
	k, err := in.theKnown(ctx)
	if err != nil {
		return nil, err
	}
	return func(r gitstore.Reader, m *layout.Manifest) error {
		err := k.judgeKnown(r, m, policy)
		if err == nil {
			k.add(m.Item, keysOf(m))
		}
		return err
	}, nil
}

// refuseKnown looks, before anything moves, whether a drop is known.
func (in *Intake) refuseKnown(ctx context.Context, d *drop) error {
	m := d.manifest()
	guard, err := in.guardKnown(ctx, &m)
	if err != nil || guard == nil {
		return err
	}
	v, err := in.ledger.Store.Tip()
	if err != nil {
		return err
	}
	k, err := in.theKnown(ctx)
	if err != nil {
		return err
	}
	if err := d.refusedBy(k.judgeKnown(v, &m, in.settings.Current().Settings.Drops(m.Collection).Duplicates)); err != nil {
		return err
	}
	return in.inherit(ctx, v, d, &m)
}

// refusedBy takes an error that refuses the drop as such.
func (d *drop) refusedBy(err error) error {
	var is *knownError
	if !errors.As(err, &is) {
		return err
	}
	d.refused, d.rule = is.text, is.rule
	return nil
}

// repeats parts the drops whose content or identifiers an earlier one of the group
// has: they are dealt with once that is an item.
func (in *Intake) repeats(drops []drop) (first, later []*drop) {
	s := in.settings.Current().Settings
	seen := map[uint64]bool{}
	for i := range drops {
		d := &drops[i]
		m := d.manifest()
		again := false
		if d.err == nil && d.refused == "" && !d.done && asks(s.Drops(m.Collection).Duplicates, &m) {
			for _, key := range keysOf(&m) {
				again = again || seen[key]
				seen[key] = true
			}
		}
		if again {
			later = append(later, d)
		} else {
			first = append(first, d)
		}
	}
	return first, later
}
