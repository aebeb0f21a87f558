package identity

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

// Rules that a known drop breaks.
const (
	RuleDuplicate  = "duplicate"
	RuleIdentifier = "identifier"
)

// KnownError refuses a drop that is known already.
type KnownError struct {
	Rule string
	Text string
}

func (k *KnownError) Error() string { return k.Text }

// Asks tells whether what is known must be looked at for such a drop.
func Asks(policy string, m *layout.Manifest) bool {
	return policy == settings.DupReject || policy == settings.DupFlag || len(m.Identifiers) > 0 || len(m.Originals) > 0
}

// Judge refuses a new item, or flags it, by what is known at r.
func (k *Keys) Judge(r gitstore.Reader, m *layout.Manifest, policy string) error {
	if err := k.JudgeOriginals(r, m); err != nil {
		return err
	}
	if err := k.JudgeContent(r, m, policy); err != nil {
		return err
	}
	return k.judgeIdentifiers(r, m)
}

func (k *Keys) JudgeContent(r gitstore.Reader, m *layout.Manifest, policy string) error {
	if policy == settings.DupReject || policy == settings.DupFlag {
		same, err := k.holders(r, digestKey(m.Source.Digest), m.Item, func(o *layout.Manifest) bool {
			return o.Source.Digest == m.Source.Digest && o.Parent == nil
		})
		if err != nil {
			return err
		}
		if len(same) > 0 && policy == settings.DupReject {
			return &KnownError{RuleDuplicate, "the same content is in " + nameItem(same[0]) + " already"}
		}
		if len(same) > 0 {
			m.Source.DuplicateOf = same[0].Item
		}
	}
	return nil
}

func (k *Keys) judgeIdentifiers(r gitstore.Reader, m *layout.Manifest) error {
	for _, kind := range slices.Sorted(maps.Keys(m.Identifiers)) {
		value := m.Identifiers[kind]
		same, err := k.holders(r, identifierKey(kind, value), m.Item, func(o *layout.Manifest) bool {
			return o.Identifiers[kind] == value
		})
		if err != nil {
			return err
		}
		if len(same) > 0 {
			return &KnownError{RuleIdentifier, fmt.Sprintf("%s %s is that of %s already", kind, ledger.Clip(ledger.Printable(value), 200), nameItem(same[0]))}
		}
	}
	return nil
}

func nameItem(m layout.Manifest) string {
	if d := m.Disposed; d != nil {
		return fmt.Sprintf("item %s (%s/%s), which was disposed of at %s: %s", m.Item, m.Collection, m.Label, layout.FormatTime(d.At), d.Reason)
	}
	return fmt.Sprintf("item %s (%s/%s, taken in %s)", m.Item, m.Collection, m.Label, layout.FormatTime(m.Created))
}

// RuleOriginal is broken by a copy of an original that another copy was faster than.
const RuleOriginal = "original"

// originalKey is the key of an original's path.
func originalKey(path string) uint64 {
	sum := sha256.Sum256([]byte("original\x00" + path))
	return binary.BigEndian.Uint64(sum[:])
}

// Original finds the item that an original is in already; changed reports whether the
// original is no longer as it was taken.
func (k *Keys) Original(r gitstore.Reader, o layout.Original, but layout.ItemID) (of *layout.Manifest, changed bool, err error) {
	items, err := k.holders(r, originalKey(o.Path), but, func(m *layout.Manifest) bool { return m.Originals[o.Path].Path != "" })
	for i := range items {
		was := items[i].Originals[o.Path]
		if was.State == o.State {
			return &items[i], false, nil
		}
		if was.File == o.File {
			of = &items[i]
		}
	}
	return of, of != nil, err
}

// JudgeOriginals refuses a copy of an original that is in an item already.
func (k *Keys) JudgeOriginals(r gitstore.Reader, m *layout.Manifest) error {
	for _, path := range slices.Sorted(maps.Keys(m.Originals)) {
		of, _, err := k.Original(r, m.Originals[path], m.Item)
		if err != nil {
			return err
		}
		if of != nil {
			return &KnownError{RuleOriginal, "it is in " + nameItem(*of) + " already"}
		}
	}
	return nil
}

// Heir is what a drop is to be a version of.
type Heir struct {
	Item    layout.ItemID
	Version int  // that the drop becomes
	First   bool // the item was registered without content
}

// HeirOf finds the one item that a drop's identifiers lead to, or takes the one that a
// person named (chosen); refusal says why the drop can be no version of it.
func (k *Keys) HeirOf(r gitstore.Reader, m *layout.Manifest, chosen layout.ItemID) (h Heir, refusal string, err error) {
	items := map[layout.ItemID]layout.Manifest{}
	if chosen != "" {
		s, err := ledger.ReadRetired(r, chosen)
		if err != nil {
			return h, "", err
		}
		data, err := r.ReadFile(layout.ItemDir(chosen) + "/" + layout.ManifestJSON)
		if errors.Is(err, fs.ErrNotExist) && s != (layout.Standing{}) {
			return h, fmt.Sprintf("it was to be a version of item %s, which is retired and is to be recalled first", chosen), nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			return h, fmt.Sprintf("it was to be a version of item %s, which is not there", chosen), nil
		}
		if err != nil {
			return h, "", err
		}
		if items[chosen], err = layout.DecodeManifest(data); err != nil {
			return h, "", err
		}
	}
	for kind, value := range m.Identifiers {
		same, err := k.holders(r, identifierKey(kind, value), m.Item, func(o *layout.Manifest) bool { return o.Identifiers[kind] == value })
		if err != nil {
			return h, "", err
		}
		for _, o := range same {
			items[o.Item] = o
		}
	}
	if len(items) != 1 {
		var names []string
		for _, o := range items {
			names = append(names, nameItem(o))
		}
		slices.Sort(names)
		if chosen != "" {
			return h, fmt.Sprintf("it was to be a version of item %s, and has an identifier of another: %s", chosen.Short(), ledger.Clip(strings.Join(names, ", "), 1000)), nil
		}
		return h, fmt.Sprintf("its identifiers are those of several items, and it can be a version of one only: %s", ledger.Clip(strings.Join(names, ", "), 1000)), nil
	}
	for _, o := range items {
		if o.Disposed != nil {
			return h, "it leads to " + nameItem(o), nil
		}
		f, err := ledger.ReadRecords(r, o.Item)
		if err != nil {
			return h, "", err
		}
		if f.Absent() {
			return h, "it leads to " + nameItem(o) + ", which is retired and is to be recalled first", nil
		}
		if o.Parent != nil {
			return h, fmt.Sprintf("it leads to %s, which is a part of item %s: a part has no versions of its own", nameItem(o), o.Parent.Item), nil
		}
		if p := o.Source.Place; p != nil && m.Source.Place == nil {
			return h, fmt.Sprintf("it leads to %s, whose object stays in catalog %s: its next version is what is put in the place of that", nameItem(o), p.Catalog), nil
		}
		h = Heir{o.Item, o.Version + 1, o.Source.Bare()}
	}
	return h, "", nil
}
